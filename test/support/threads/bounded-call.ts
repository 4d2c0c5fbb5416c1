/**
 * Calls a function of a module in a thread of its own, and ends the thread after a time that only
 * a function takes whose cost grows with a power of its input.
 */
import { once } from "node:events";
import { Worker } from "node:worker_threads";

/** Milliseconds: the calls of tests take some, and would take minutes. */
const limitMs = 20_000;

const program = `
const { parentPort, workerData } = require("node:worker_threads");
const { url, name, args } = workerData;
import(url)
  .then((module) => module[name](...args))
  .then((value) => ({ value }), (error) => ({ error: error.message }))
  .then((answer) => parentPort.postMessage(answer));`;

/**
 * What the function returns, or the message of what it throws. Rejects when it takes too long.
 *
 * @param file the module's path from the root of the project
 */
export async function callBounded(
  file: string,
  name: string,
  ...args: readonly unknown[]
): Promise<{ readonly value?: unknown; readonly error?: string }> {
  const { href: url } = new URL(`../../../${file}`, import.meta.url);
  const thread = new Worker(program, { eval: true, workerData: { url, name, args } });
  try {
    const [answer] = (await once(thread, "message", { signal: AbortSignal.timeout(limitMs) })) as [
      { value?: unknown; error?: string },
    ];
    return answer;
  } finally {
    await thread.terminate();
  }
}
