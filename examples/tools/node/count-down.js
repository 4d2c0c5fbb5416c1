/**
 * An example tool in JavaScript: what a long-running tool looks like to its user.
 */
import { setTimeout as sleep } from "node:timers/promises";

/**
 * Counts down, one status per step.
 *
 * @param {{ from?: number, pause_seconds?: number }} args
 * @param {import("secure-tool-runtime/tool").ToolContext} ctx
 */
export async function countDown({ from = 5, pause_seconds: pauseSeconds = 0.5 }, ctx) {
  for (let number = from; number > 0; number -= 1) {
    await ctx.sendStatus(`${number}...`);
    await sleep(pauseSeconds * 1_000);
  }
  return { counted_from: from, word: "Lift-off" };
}
