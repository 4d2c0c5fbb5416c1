/**
 * The runner in a child of a template: a copy of it, which goes on by itself.
 */
import { channel, isCalled, rehearse } from "../parked.js";

// Taken before the tool is loaded, which may replace them by accident or for its tests.
const { process } = globalThis;
const { closeSync, writeSync } = process.getBuiltinModule("node:fs");
const { emit, exit, nextTick } = process;
const { defineProperty } = Object;
const { apply } = Reflect;
const { stringify } = JSON;

/** @import { Addon } from "./addon.js" */
/** @import { Generators } from "./generators.js" */

/**
 * What a child has in place of a process that was started for it.
 *
 * @typedef {object} Child
 * @property {(status: number) => never} exit ends it
 * @property {number} [gateway] descriptor of its gateway's channel
 */

/**
 * Makes this process, which was forked, the runner of a child, and waits for its call. Ends it where
 * there is none.
 *
 * @param {Addon} addon
 * @param {Generators} generators
 * @param {number} pid
 * @returns {Child}
 */
export function becomeRunner(addon, generators, pid) {
  /** @type {(status?: number | string | null) => never} */
  const leave = (status) => addon.exit(Number(status ?? 0));
  defineProperty(process, "pid", { value: pid });
  // Node's own would wait for threads that are not there.
  Reflect.set(process, "reallyExit", leave);
  addon.onRest(
    () => nextTick(() => apply(emit, process, ["beforeExit", process.exitCode ?? 0])),
    () => nextTick(() => exit.call(process)),
  );
  generators.seed();
  try {
    rehearse();
    writeSync(channel, `${stringify({ ready: true })}\n`);
    if (!isCalled()) leave(0);
    closeSync(channel);
  } catch {
    // The worker is gone.
    leave(1);
  }
  return { exit: leave };
}
