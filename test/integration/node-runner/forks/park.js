/**
 * In place of `parked.js`: see hook.js.
 */
import { readlinkSync } from "node:fs";
import { openAddon } from "../../../../tool-runner/node/forks/addon.js";
import { Generators } from "../../../../tool-runner/node/forks/generators.js";
import { becomeRunner } from "../../../../tool-runner/node/forks/runner.js";
import { loadToRest, rehearse } from "../../../../tool-runner/node/parked.js";

const { kill, reallyExit } = /** @type {NodeJS.Process & { reallyExit(status: number): never }} */ (
  process
);
const maxCallMs = 100_000;

/**
 * @template Loaded
 * @param {() => Promise<Loaded>} load
 * @param {(description: string, loaded: Loaded, channel: object, child: object) => void} onCall
 */
export async function park(load, onCall) {
  const addon = openAddon();
  const generators = new Generators();
  const loaded = await loadToRest(load);
  generators.release();
  rehearse();
  const pid = addon.fork();
  if (pid === 0) {
    const own = Number(readlinkSync("/proc/self"));
    const { description, channel, child } = becomeRunner(addon, generators, own);
    return onCall(description, loaded, channel, child);
  }
  const status = addon.await(pid, maxCallMs);
  if (status < 0) kill(process.pid, -status);
  reallyExit.call(process, status);
}
