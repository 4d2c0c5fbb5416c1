/** A tool that waits for as long as its argument says. */
import { setTimeout } from "node:timers/promises";

export async function nothing({ seconds = 0 }) {
  if (seconds > 0) await setTimeout(seconds * 1000);
  return {};
}
