/**
 * A stand-in for systemd: a command in mounts, a user and without capabilities as systemd makes
 * them of the directives of deploy/systemd/str-worker.service. System calls are not filtered.
 */
import { execFile } from "node:child_process";
import { promisify } from "node:util";

const run = promisify(execFile);

/** What systemd makes of each directive; the order is that of the mounts. */
export const directives: Readonly<Record<string, string>> = {
  "PrivateTmp=yes":
    "mount -t tmpfs -o mode=1777 tmpfs /tmp; mount -t tmpfs -o mode=1777 tmpfs /var/tmp",
  "ProtectHome=yes":
    "mkdir -m 0 /tmp/none; mount --bind /tmp/none /home; mount --bind /tmp/none /root",
  "ProtectKernelModules=yes":
    "mkdir -p -m 0 /tmp/none; [ ! -e /usr/lib/modules ] || mount --bind /tmp/none /usr/lib/modules",
  "PrivateDevices=yes": [
    "mkdir /tmp/dev; mount -t tmpfs -o mode=755,nosuid,noexec tmpfs /tmp/dev",
    "mkdir /tmp/dev/pts /tmp/dev/shm; ln -s /proc/self/fd /tmp/dev/fd",
    "for name in null zero full random urandom tty",
    "do touch /tmp/dev/$name; mount --bind /dev/$name /tmp/dev/$name; done",
    "mount --rbind /dev/pts /tmp/dev/pts; mount --rbind /dev/shm /tmp/dev/shm",
    "mount --move /tmp/dev /dev",
  ].join("\n"),
  "ProtectSystem=strict": "mount -o remount,bind,ro /",
};

/** Directives that the unit must not have. */
export const missingDirectives: Readonly<Record<string, string>> = {
  "ProtectKernelTunables=yes":
    "mount --bind /proc/sys /proc/sys; mount -o remount,bind,ro /proc/sys",
};

/** Output of a command, whatever its exit code is. Needs root. */
export async function runAsUnit(
  mounts: Readonly<Record<string, string>>,
  argv: readonly string[],
): Promise<string> {
  const unprivileged = "setpriv --reuid 1000 --regid 1000 --clear-groups --bounding-set=-all";
  const script = [
    "set -e",
    ...Object.values(mounts),
    `exec env HOME=/nonexistent ${unprivileged} --inh-caps=-all --no-new-privs "$@"`,
  ].join("\n");
  const program = ["--mount", "--propagation", "private", "sh", "-c", script, "sh", ...argv];
  const ended = (error: unknown) => error as { stdout: string; stderr: string };
  const { stdout, stderr } = await run("unshare", program).catch(ended);
  return stdout + stderr;
}
