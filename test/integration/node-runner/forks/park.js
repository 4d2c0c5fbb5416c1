/**
 * In place of `parked.js`: see hook.js.
 */
import { readlinkSync } from "node:fs";
import { openAddon } from "../../../../tool-runner/node/forks/addon.js";
import { Generators } from "../../../../tool-runner/node/forks/generators.js";
import { becomeRunner, nextCall } from "../../../../tool-runner/node/forks/runner.js";
import { setFlagsOfTools } from "../../../../tool-runner/node/forks/template.js";
import { loadToRest, tryToWork } from "../../../../tool-runner/node/parked.js";

const { kill, reallyExit } = /** @type {NodeJS.Process & { reallyExit(status: number): never }} */ (
  process
);
const maxCallMs = 100_000;

/**
 * @template Loaded
 * @param {() => Promise<Loaded>} load
 * @param {(description: string, loaded: Loaded, channel: object, child: object) => void} onCall
 * @param {() => Promise<void>} rehearse
 */
export async function park(load, onCall, rehearse) {
  setFlagsOfTools();
  const addon = openAddon();
  const generators = new Generators();
  const loaded = await loadToRest(load);
  generators.release();
  await tryToWork(rehearse);
  const pid = addon.fork();
  if (pid === 0) {
    const own = Number(readlinkSync("/proc/self"));
    const runner = becomeRunner(addon, generators, own);
    const description = await nextCall(runner, rehearse);
    return onCall(description, loaded, runner.channel, runner.child);
  }
  const status = addon.await(pid, maxCallMs);
  if (status < 0) kill(process.pid, -status);
  reallyExit.call(process, status);
}
