/**
 * A runner that loads its tool before there is a call. See tool-runner/PROTOCOL.md, "Parked".
 */
import { beginning, describe } from "./errors.js";
import { nothing } from "./protocol.js";
import { WakeChannel, readCall } from "./wake-channel.js";

// Taken before the tool is loaded, which may replace them by accident or for its tests.
const { clearTimeout, process, setImmediate, setTimeout } = globalThis;
const { Function: NativeFunction, Promise: NativePromise } = globalThis;
const { getActiveResourcesInfo, listenerCount, off, reallyExit } =
  /** @type {NodeJS.Process & { reallyExit(status: number): never }} */ (process);
const { byteLength, from: bytesOf } = Buffer;

/**
 * The socket to the worker. The launch has moved it here: at 0 the module would find it as its
 * standard input.
 */
export const channelDescriptor = 3;
const channel = new WakeChannel(channelDescriptor);
/** Characters of a reason, so that a line of six bytes for each has its room in 4 KiB. */
const reasonMaxCharacters = 500;
/** Milliseconds that what the import has started may take to end. */
const restMs = 1_000;
/** Functions that rehearsals have compiled. */
let compiled = 0;

/**
 * Imports a module, waits until it is called and goes on with it; or ends the process.
 *
 * @template Loaded
 * @param {() => Promise<Loaded>} load
 * @param {(description: string, loaded: Loaded, channel: WakeChannel) => void} onCall what a cold
 *   start does now
 * @param {(description: string) => Promise<void>} rehearse does what every call does
 */
export async function park(load, onCall, rehearse) {
  const loaded = await loadToRest(load);
  await tryToWork(rehearse);
  report({ ready: true });
  // Not even the event loop runs meanwhile.
  const description = takeCall(channel);
  if (description === undefined) return end(0);
  onCall(description, loaded, channel);
}

/**
 * Imports a module and waits until the event loop has run empty.
 *
 * @template Loaded
 * @param {() => Promise<Loaded>} load
 */
export async function loadToRest(load) {
  /** @type {() => unknown} */
  let onIdle = () => refuse("its top-level await never ends");
  const whenIdle = () => onIdle();
  const onExit = () => refuse("it ends the process");
  process.on("beforeExit", whenIdle);
  process.on("exit", onExit);
  const loaded = await load().catch((thrown) => refuse(`its import fails: ${describe(thrown)}`));
  // Now that would be told of an end that is none.
  if (listenerCount.call(process, "beforeExit") > 1) refuse('it listens for "beforeExit"');
  const timer = setTimeout(() => refuse(`it leaves something running: ${active()}`), restMs);
  timer.unref();
  await new NativePromise((resolve) => {
    onIdle = () => setImmediate(resolve);
  });
  clearTimeout(timer);
  off.call(process, "beforeExit", whenIdle);
  off.call(process, "exit", onExit);
  return loaded;
}

/** What Node counts as running; stdout and stderr may be among it, which keep nothing alive. */
function active() {
  return [...new Set(getActiveResourcesInfo.call(process))].join(", ");
}

/**
 * Rehearses, and refuses where the module has broken what the runner needs.
 *
 * @param {(description: string) => Promise<void>} rehearse
 * @param {number} times
 */
export async function tryToWork(rehearse, times = 1) {
  try {
    for (let n = 0; n < times; n += 1) await rehearseCall(rehearse);
  } catch (thrown) {
    refuse(`the runner cannot work beside it: ${describe(thrown)}`);
  }
}

/**
 * Takes a call of nothing as if the worker had sent it: the first one takes a millisecond more,
 * most of it for compiling.
 *
 * @param {(description: string) => Promise<void>} rehearse
 */
export async function rehearseCall(rehearse) {
  compileAnew();
  const sent = bytesOf(`call ${byteLength(nothing)}\n${nothing}`);
  await rehearse(readCall((into, at) => sent.copy(into, at)) ?? "");
}

/** As V8 does with a tool's function when it is called. */
function compileAnew() {
  compiled += 1;
  // A text that V8 has not compiled yet.
  new NativeFunction(`return ${compiled}`)();
}

/**
 * The description of the call; undefined where the worker does not need this process.
 *
 * @param {WakeChannel} from
 */
export function takeCall(from) {
  try {
    return from.takeCall();
  } catch {
    return undefined;
  }
}

/**
 * @param {string} reason
 * @returns {never}
 */
export function refuse(reason) {
  report({ unfit: beginning(reason, reasonMaxCharacters) });
  return end(1);
}

/** @param {object} message */
export function report(message) {
  try {
    channel.report(message);
  } catch {
    // The worker is gone.
    end(0);
  }
}

/**
 * Ends the process without anything that the module has put at its end.
 *
 * @param {number} status
 * @returns {never}
 */
export function end(status) {
  return reallyExit.call(process, status);
}
