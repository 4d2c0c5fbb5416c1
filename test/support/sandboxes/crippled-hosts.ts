/**
 * Hosts that do not allow sandboxes something: made for one process by namespaces of its own,
 * without root.
 */
import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { seccompProgram } from "../../../worker/sandbox/bubblewrap/seccomp/seccomp.ts";
import { firstPrivateDirectory } from "../../../worker/sandbox/path-permissions.ts";
import { isRoot } from "../is-root.ts";

const run = promisify(execFile);

/** An ordinary user, for tests that run as root. */
export const ordinaryUid = 60_002;

/** What makes a command line run as an ordinary user without a capability. */
export const asOrdinaryUser: readonly string[] = isRoot
  ? [
      "setpriv",
      ...["--reuid", String(ordinaryUid), "--regid", String(ordinaryUid), "--clear-groups"],
      ...["--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"],
    ]
  : [];

/** What a host lacks. */
export type Lack =
  "user namespaces" | "network namespaces" | "a /proc of its own" | "sysctls" | "system calls";

/** What a shell does to its own user and mount namespaces. */
const deeds: Readonly<Record<Exclude<Lack, "system calls">, string>> = {
  "user namespaces": "echo 0 > /proc/sys/user/max_user_namespaces",
  "network namespaces": "echo 0 > /proc/sys/user/max_net_namespaces",
  // As container engines do it; the kernel then refuses a new one.
  "a /proc of its own": "mount -t tmpfs tmpfs /proc/irq",
  // As container engines do it as well.
  sysctls: "mount --bind /proc/sys /proc/sys; mount -o remount,bind,ro /proc/sys",
};

/**
 * What makes a command line run on such a host, as an ordinary user without a capability.
 *
 * @param directory one that everybody can pass, for what has to be kept meanwhile
 */
export async function crippledHost(lack: Lack, directory: string): Promise<readonly string[]> {
  if (lack === "system calls") return filtered(directory);
  const script = `set -e; ${deeds[lack]}; exec setpriv --inh-caps=-all --ambient-caps=-all "$@"`;
  return [
    // The capabilities in its own namespace are those that the shell gives away.
    ...asOrdinaryUser.filter((option) => !/no-new-privs|bounding-set/.test(option)),
    ...["unshare", "--user", "--map-current-user", "--keep-caps", "--mount"],
    ...["/bin/sh", "-c", script, "sh"],
  ];
}

/** The filter of our own sandboxes, which refuses namespaces, around whatever makes sandboxes. */
async function filtered(directory: string): Promise<readonly string[]> {
  if (process.arch !== "x64" && process.arch !== "arm64") throw new Error("there is no filter");
  const program = join(directory, "filter");
  await writeFile(program, seccompProgram(process.arch), { mode: 0o644 });
  const script = `exec bwrap --dev-bind / / --seccomp 9 -- "$@" 9< ${program}`;
  return [...asOrdinaryUser, "/bin/sh", "-c", script, "sh"];
}

/** Why such a host cannot be made here, or undefined when it can. */
export async function crippledHostProblem(prefix: readonly string[]): Promise<string | undefined> {
  const barrier = await firstPrivateDirectory(import.meta.dirname);
  if (barrier !== undefined && isRoot) return "the checkout is private to root";
  const [file = "", ...argv] = [...prefix, "/bin/true"];
  return run(file, argv).then(
    () => undefined,
    (error: Error) => error.message,
  );
}
