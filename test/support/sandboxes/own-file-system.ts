/**
 * A file system that nobody else writes to.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { onTestFinished } from "vitest";

/** In namespaces of its own no privilege is needed to mount. */
const script = 'mount -t tmpfs -o "$0" tmpfs /mnt && echo mounted && exec sleep 600';

/**
 * A directory in memory, seen through the process that has mounted it; both end with the test.
 *
 * @param options as mount(8) takes them
 */
export async function ownFileSystem(options = "rw"): Promise<string> {
  const argv = ["--user", "--map-root-user", "--mount", "/bin/sh", "-c", script, options];
  const child = spawn("/usr/bin/unshare", argv, { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(async () => {
    child.kill("SIGKILL");
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  });
  await once(child.stdout, "data");
  return `/proc/${child.pid}/root/mnt`;
}
