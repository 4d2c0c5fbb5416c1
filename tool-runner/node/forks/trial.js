/**
 * A trial before the first child: Node does not promise that it can be forked.
 */
import { describe } from "../errors.js";
import { standIn } from "./seeding.js";

// Taken before the tool is loaded, which may replace them by accident or for its tests.
const { process, Promise: NativePromise } = globalThis;
const { readFile } = process.getBuiltinModule("node:fs/promises");
const { connect, createServer } = process.getBuiltinModule("node:net");
const { setTimeout: sleep } = process.getBuiltinModule("node:timers/promises");
const { setFlagsFromString } = process.getBuiltinModule("node:v8");
const { registerHooks } = process.getBuiltinModule("node:module");
const { runInNewContext } = process.getBuiltinModule("node:vm");

/** Milliseconds for a trial, many times the usual. */
const trialMs = 5_000;

const threadsModule = /^(?:node:)?worker_threads$/;
const { defineProperty } = Object;
const { apply } = Reflect;

/** @import { Addon } from "./addon.js" */

/**
 * Forks a process that uses the event loop, threads and the garbage collector and ends when its
 * event loop runs empty. Never settles in that process.
 *
 * @param {Addon} addon
 * @param {boolean} usesThreads whether the tool has imported `node:worker_threads`
 * @returns {Promise<string | undefined>} why children would not work, where they would not
 */
export async function tryChild(addon, usesThreads) {
  let isDone = false;
  const leave = () => addon.exit(isDone ? 0 : 1);
  addon.onRest(leave, leave);
  let pid;
  try {
    pid = addon.fork();
  } catch (thrown) {
    return describe(thrown);
  }
  if (pid === 0) {
    addon.silence();
    await work(usesThreads).then(
      () => (isDone = true),
      () => addon.exit(1),
    );
    return new NativePromise(() => undefined);
  }
  const status = addon.await(pid, trialMs);
  if (status === 0) return undefined;
  const end = status < 0 ? `signal ${-status}` : `status ${status}`;
  return `a fork of Node ${process.versions.node} ends with ${end} in place of working`;
}

/** @param {boolean} usesThreads */
async function work(usesThreads) {
  await sleep(1);
  await readFile("/dev/null");
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc");
  collect({ type: "minor" });
  collect();
  await new NativePromise(connectToItself);
  if (usesThreads) await endThread();
}

/** Threads of Node 26 wait for V8's, which are not there, where they end by themselves. */
async function endThread() {
  const { Worker } = process.getBuiltinModule("node:worker_threads");
  const worker = new Worker('gc({ type: "minor" });', { eval: true });
  await new NativePromise((resolve) => worker.once("exit", resolve));
}

/** @param {(value?: unknown) => void} done where there is no network, too */
function connectToItself(done) {
  const server = createServer((socket) => socket.end());
  server.on("error", done).listen(0, "127.0.0.1", () => {
    const { port = 0 } = /** @type {import("node:net").AddressInfo} */ (server.address());
    connect(port, "127.0.0.1")
      .on("error", done)
      .on("close", () => server.close(done))
      .resume();
  });
}

/**
 * Watches imports until the function that it returns is called: that says what `tryChild` asks. A
 * module of Node's can also be had without an import.
 */
export function watchThreads() {
  let usesThreads = false;
  const own = standIn(process, "getBuiltinModule", (name) => {
    usesThreads ||= threadsModule.test(name);
    return apply(own, process, [name]);
  });
  const hooks = registerHooks({
    resolve: (specifier, context, next) => {
      usesThreads ||= threadsModule.test(specifier);
      return next(specifier, context);
    },
  });
  return () => {
    hooks.deregister();
    defineProperty(process, "getBuiltinModule", { value: own });
    return usesThreads;
  };
}
