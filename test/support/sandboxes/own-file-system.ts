/**
 * A file system that nobody else writes to.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { onTestFinished } from "vitest";

/**
 * A directory in memory, seen through the process that has mounted it; both end with the test.
 *
 * @param size of the file system, as tmpfs(5) spells it
 */
export async function ownFileSystem(size = "50%"): Promise<string> {
  // In namespaces of its own no privilege is needed to mount.
  const script = `mount -t tmpfs -o size=${size} tmpfs /mnt && echo mounted && exec sleep 600`;
  const argv = ["--user", "--map-root-user", "--mount", "/bin/sh", "-c", script];
  const child = spawn("/usr/bin/unshare", argv, { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(async () => {
    child.kill("SIGKILL");
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  });
  await once(child.stdout, "data");
  return `/proc/${child.pid}/root/mnt`;
}
