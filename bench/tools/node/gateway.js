/**
 * Tools that call others by their gateway, and tell how long that took them, in milliseconds.
 */
import { performance } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";

/** @import { ToolContext } from "secure-tool-runtime/tool" */

/**
 * The median of so many questions for the namespaces, after one that opens the channel.
 * @param {{ count: number }} args
 * @param {ToolContext} context
 */
export async function lists({ count }, { tools }) {
  await tools.namespaces();
  const times = [];
  for (let n = 0; n < count; n++) {
    const start = performance.now();
    await tools.namespaces();
    times.push(performance.now() - start);
  }
  return { ms: times.sort((one, other) => one - other)[Math.floor(count / 2)] };
}

/**
 * So many calls one after the other, after a pause of seconds and a question that opens the channel.
 * @param {{ tool: string, count: number, pause?: number }} args
 * @param {ToolContext} context
 */
export async function calls({ tool, count, pause = 0 }, { tools }) {
  await sleep(pause * 1000);
  await tools.namespaces();
  const start = performance.now();
  for (let n = 0; n < count; n++) await tools.call(tool);
  return { ms: performance.now() - start };
}
