/**
 * The lock of a checkout, so that two first runs at once do not write into one node_modules.
 */
import { spawnSync } from "node:child_process";
import { openSync } from "node:fs";
import { runInstaller } from "./installer.mjs";
import { SetupError, say } from "./report.mjs";

/** Long enough for the slowest first setup of another process. */
const timeoutSeconds = 900;

/**
 * Takes the lock on `root` and gives the descriptor that holds it. The kernel drops it when every
 * process that holds the descriptor has ended, so an installer that gets it keeps the lock, and
 * nothing stale stays behind.
 */
export async function lockCheckout(root) {
  const lock = openSync(root, "r");
  // flock(1) of a descriptor that it shares with this process: the lock outlives flock.
  const now = spawnSync("flock", ["--nonblock", "3"], {
    stdio: ["ignore", "inherit", "inherit", lock],
  });
  if (now.error) {
    throw new SetupError(`cannot run flock (Debian package util-linux): ${now.error.message}`);
  }
  if (now.status === 0) return lock;
  say(`waiting for another setup of ${root} to end, ${timeoutSeconds / 60} minutes at most`);
  const later = await runInstaller(["flock", "--timeout", String(timeoutSeconds), "3"], { lock });
  if (later.status === 0) return lock;
  throw new SetupError(`another setup of ${root} has not ended after ${timeoutSeconds} s`);
}
