/**
 * A runner that loads its tool once and makes children for its calls. See tool-runner/PROTOCOL.md,
 * "Templates".
 */
import { describe } from "../errors.js";
import { channelDescriptor, end, loadToRest, refuse, report, tryToWork } from "../parked.js";
import { openAddon } from "./addon.js";
import { presentState, whyNotToFork } from "./fork-safety.js";
import { Generators } from "./generators.js";
import { becomeRunner, nextCall } from "./runner.js";
import { tryChild, watchThreads } from "./trial.js";

// Taken before the tool is loaded, which may replace them by accident or for its tests.
const { process } = globalThis;
const { readFileSync, readSync } = process.getBuiltinModule("node:fs");
const { dirname } = process.getBuiltinModule("node:path");
const { getHeapSpaceStatistics, setFlagsFromString } = process.getBuiltinModule("node:v8");
const { pid: ownPid } = process;
const { entries, keys } = Object;
const { from: arrayFrom } = Array;
const { parse } = JSON;

/** Flags that Node needs to be forked, and that a tool need not see. */
const ownFlags = /^--(?:single-threaded|v8-pool-size=\d+|no-lazy|no-flush-bytecode)$/;
/**
 * A long loop would wait for a thread to compile it; this one compiles it, but for the best. The
 * runner is compiled as a whole, so that no child compiles it, but a tool is not: that takes long,
 * and then V8 forgets the names of some functions.
 */
const flagsOfTools = ["--no-maglev-osr", "--lazy"];
/** What a tool calls others by: as part of the runner, so that no child loads or compiles it. */
const clientOfTools = ["../tool.js", "../gateway/client.js"];
/** Names that are always in a work directory. */
const workDirNames = ["input", "output", "status.pipe", "runner_args.json"];
/** Resources of prlimit(2). */
const resources = /** @type {Readonly<Record<string, number>>} */ ({
  ...{ CPU: 0, FSIZE: 1, CORE: 4, NPROC: 6, NOFILE: 7, MEMLOCK: 8, AS: 9 },
  ...{ SIGPENDING: 11, MSGQUEUE: 12, NICE: 13, RTPRIO: 14 },
});
/** Ids that processes may have (proc_sys_kernel(5)). */
const maxPidFile = "/proc/sys/kernel/pid_max";
/** Before the first fork: V8 compiles what each child runs, 0.25 ms of a call. */
const rehearsals = 20;
/** Pieces of garbage of 64 KiB that fill the room of V8's youngest objects for sure. */
const maxPieces = 1_024;
const pieceLength = 8 * 1024;
const chunk = Buffer.alloc(64 * 1024);

/** @import { Addon, ChildOrder } from "./addon.js" */
/** @import { Child } from "./runner.js" */
/** @import { WakeChannel } from "../wake-channel.js" */

/**
 * @typedef {object} Settings
 * @property {boolean} network
 * @property {boolean} terminals
 * @property {boolean} gateway
 * @property {Readonly<Record<string, string>>} tmpfs
 * @property {string} filter
 * @property {Readonly<Record<string, readonly [number | null, number | null]>>} limits
 */

/**
 * Imports a module, makes children for orders, and goes on with the call of one in each.
 *
 * @template Loaded
 * @param {() => Promise<Loaded>} load
 * @param {string} argsFile
 * @param {(description: string, loaded: Loaded, channel: WakeChannel, child: Child) => void} onCall
 *   what a cold start does now
 * @param {(description: string) => Promise<void>} rehearse does what every call does
 */
export async function template(load, argsFile, onCall, rehearse) {
  const told = nextLine();
  if (told === undefined) return end(0);
  const settings = /** @type {Settings} */ (parse(told));
  process.execArgv = process.execArgv.filter((flag) => !ownFlags.test(flag));
  if (settings.gateway) await Promise.all(clientOfTools.map((file) => import(file)));
  setFlagsOfTools();
  const addon = isolating(openAddon);
  settleLibraries();
  const before = presentState();
  const generators = new Generators();
  const usesThreads = watchThreads();
  const loaded = await loadToRest(load);
  /** @type {Map<string, readonly string[]>} */
  const places = new Map([[dirname(argsFile), workDirNames]]);
  for (const path of keys(settings.tmpfs)) places.set(path, []);
  const reason =
    generators.release() ?? whyNotToFork(before, places) ?? (await tryChild(addon, usesThreads()));
  if (reason !== undefined) refuse(`it cannot be forked after its import: ${reason}`);
  await tryToWork(rehearse, rehearsals);
  try {
    collectYoungest();
  } catch {
    // The module has changed what arrays are. Calls are slower now and then.
  }
  // The kernel reaps children from now on, which the trial must not be.
  const gateway = isolating(() => addon.prepare(addonSettings(settings)));
  report({ ready: true });
  const runner = makeChildren(addon, generators);
  const description = await nextCall(runner, rehearse);
  const { channel, child } = runner;
  onCall(description, loaded, channel, settings.gateway ? { ...child, gateway } : child);
}

/** Of V8, for what is imported from now on. */
export function setFlagsOfTools() {
  for (const flag of flagsOfTools) setFlagsFromString(flag);
}

/**
 * @template Made
 * @param {() => Made} make
 * @returns {Made}
 */
function isolating(make) {
  try {
    return make();
  } catch (thrown) {
    return refuse(`children of it cannot be isolated: ${describe(thrown)}`);
  }
}

/**
 * Has V8 collect the garbage of its youngest objects now: in a child that takes milliseconds, since
 * it copies each page that it touches.
 */
function collectYoungest() {
  let former = 0;
  for (let n = 0; n < maxPieces; n += 1) {
    const used = youngestBytes();
    if (used < former) return;
    former = used;
    arrayFrom({ length: pieceLength }, () => 0);
  }
}

function youngestBytes() {
  for (const { space_name: name, space_used_size: used } of getHeapSpaceStatistics())
    if (name === "new_space") return used;
  return 0;
}

/** libuv opens a pipe when the first signal is listened for. It is made anew in a child. */
function settleLibraries() {
  const listener = () => undefined;
  process.on("SIGWINCH", listener).off("SIGWINCH", listener);
}

/** @param {Settings} settings */
function addonSettings({ network, terminals, gateway, tmpfs, filter, limits }) {
  return {
    network,
    terminals,
    gateway,
    mounts: entries(tmpfs),
    limits: entries(limits).map(([name, [soft, hard]]) => {
      const resource = resources[name];
      if (resource === undefined) throw new Error(`there is no limit ${name}`);
      return /** @type {const} */ ([resource, soft ?? -1, hard ?? -1]);
    }),
    filter: Buffer.from(filter, "hex"),
  };
}

/**
 * Makes a child for each order. Returns in a child, and nowhere else.
 *
 * @param {Addon} addon
 * @param {Generators} generators
 * @returns {ReturnType<typeof becomeRunner>}
 */
function makeChildren(addon, generators) {
  const maxPid = Number(readFileSync(maxPidFile, "utf8"));
  for (let pid = ownPid + 1; ; pid += 1) {
    const line = nextLine();
    if (line === undefined) return end(0);
    /** @type {Omit<ChildOrder, "pid">} */
    const order = parse(line);
    try {
      if (pid >= maxPid) throw new Error("the template has given out all process ids");
      const first = addon.child({ ...order, pid });
      if (first !== 0) {
        report({ forked: first });
        continue;
      }
    } catch (thrown) {
      report({ failed: describe(thrown) });
      continue;
    }
    return becomeRunner(addon, generators, pid);
  }
}

let held = "";

/** What the worker says next, or undefined where it says nothing more. */
function nextLine() {
  for (;;) {
    const length = held.indexOf("\n");
    if (length !== -1) {
      const line = held.slice(0, length);
      held = held.slice(length + 1);
      return line;
    }
    const read = readSync(channelDescriptor, chunk, 0, chunk.length, null);
    if (read === 0) return undefined;
    held += chunk.toString("latin1", 0, read);
  }
}
