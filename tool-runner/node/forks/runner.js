/**
 * The runner in a child of a template: a copy of it, which goes on by itself.
 */
import { printStack } from "../errors.js";
import { channelDescriptor, rehearseCall, takeCall } from "../parked.js";
import { WakeChannel } from "../wake-channel.js";

// Taken before the tool is loaded, which may replace them by accident or for its tests.
const { process } = globalThis;
const { emit, exit, nextTick } = process;
const { defineProperty } = Object;
const { apply } = Reflect;

/** Of a process whose listener for exceptions throws one. */
const listenerFailed = 7;

/** @import { Addon } from "./addon.js" */
/** @import { Generators } from "./generators.js" */

/**
 * What a child has in place of a process that was started for it.
 *
 * @typedef {object} Child
 * @property {(status: number) => never} exit ends it
 * @property {() => void} giveWay call before the worker is told to end it, which is about to answer
 * @property {number} [gateway] descriptor of its gateway's channel
 */

/**
 * Makes this process, which was forked, the runner of a child.
 *
 * @param {Addon} addon
 * @param {Generators} generators
 * @param {number} pid
 * @returns {{ channel: WakeChannel, child: Child }} where its call comes by, and what it has
 */
export function becomeRunner(addon, generators, pid) {
  /** @type {(status?: number | string | null) => never} */
  const leave = (status) => addon.exit(Number(status ?? 0));
  defineProperty(process, "pid", { value: pid });
  // Node's own would wait for threads that are not there.
  Reflect.set(process, "reallyExit", leave);
  endByListeners(leave);
  addon.onRest(
    () => nextTick(() => apply(emit, process, ["beforeExit", process.exitCode ?? 0])),
    () => nextTick(() => exit.call(process)),
  );
  generators.seed();
  // That of the template has another identity.
  return {
    channel: new WakeChannel(channelDescriptor),
    child: { exit: leave, giveWay: addon.giveWay },
  };
}

/**
 * Waits for the call of a child. Ends it where there is none.
 *
 * @param {ReturnType<typeof becomeRunner>} runner
 * @param {(description: string) => Promise<void>} rehearse once, so that the memory that a call
 *   writes to is its own before
 * @returns {Promise<string>} the description of the call
 */
export async function nextCall({ channel, child }, rehearse) {
  try {
    await rehearseCall(rehearse);
  } catch (thrown) {
    printStack(thrown);
    child.exit(1);
  }
  try {
    channel.report({ ready: true });
  } catch {
    // The worker is gone.
    child.exit(1);
  }
  return takeCall(channel) ?? child.exit(0);
}

/**
 * Ends the process where a listener for exceptions throws one: Node itself would do it by its own
 * exit.
 *
 * @param {(status: number) => never} leave
 */
function endByListeners(leave) {
  const { emit: present } = process;
  /** @type {(this: NodeJS.Process, ...given: any[]) => boolean} */
  const value = function (...given) {
    try {
      return apply(present, this, given);
    } catch (thrown) {
      if (given[0] !== "uncaughtException") throw thrown;
      printStack(thrown);
      return leave(listenerFailed);
    }
  };
  defineProperty(process, "emit", { value, writable: true, configurable: true });
}
