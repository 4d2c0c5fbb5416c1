/**
 * A trial before the first child: Node does not promise that it can be forked.
 */
const { readFile } = process.getBuiltinModule("node:fs/promises");
const { connect, createServer } = process.getBuiltinModule("node:net");
const { setTimeout: sleep } = process.getBuiltinModule("node:timers/promises");
const { setFlagsFromString } = process.getBuiltinModule("node:v8");
const { runInNewContext } = process.getBuiltinModule("node:vm");
const { Promise: NativePromise } = globalThis;

/** Milliseconds for a trial, many times the usual. */
const trialMs = 5_000;

/** @import { Addon } from "./addon.js" */

/**
 * Forks a process that uses the event loop, threads and the garbage collector and ends when its
 * event loop runs empty. Never settles in that process.
 *
 * @param {Addon} addon
 * @returns {Promise<string | undefined>} why children would not work, where they would not
 */
export async function tryChild(addon) {
  let isDone = false;
  const leave = () => addon.exit(isDone ? 0 : 1);
  addon.onRest(leave, leave);
  const pid = addon.fork();
  if (pid === 0) {
    addon.silence();
    await work().then(
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

async function work() {
  await sleep(1);
  await readFile("/dev/null");
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc");
  collect({ type: "minor" });
  collect();
  await new NativePromise(connectToItself);
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
