/**
 * Waiting for a span in which no call of a namespace runs.
 *
 * A worker whose places are all taken lets go of the queues of which it runs no call, and binds to them again when it has
 * room. Such a queue looks like one that nobody serves, for as long as the calls run that fill the worker. Where none runs,
 * every worker binds to all the queues that it serves, but one with few places to one after the other.
 */
import type { Context } from "../context.ts";
import { printable } from "../screen.ts";
import type { QueueTraffic } from "./semp.ts";

/** Seconds in which a worker that has one place to spare has been at a hundred queues. */
export const quietSeconds = 10;

/** Queues that are named, at most. */
const maxNamed = 10;

/**
 * Waits, and looks at the queues of a namespace until they were quiet for `quietSeconds`, or for all the time if that is
 * shorter. Resolves at the end of the time: with the calls that ran in the last span that was looked at, or undefined when
 * there was a quiet one. Throws what `look` throws, or the signal's reason.
 */
export async function waitForQuiet(
  seconds: number,
  look: () => Promise<readonly QueueTraffic[]>,
  { clock, signal, err }: Pick<Context, "clock" | "signal" | "err">,
): Promise<string | undefined> {
  const spans = Math.max(1, Math.floor(seconds / quietSeconds));
  const spanMs = (seconds * 1000) / spans;
  let before = await look();
  let calls = callsIn(before);
  if (calls !== undefined) {
    err.line(`calls run: ${calls}; waiting for ${Math.round(spanMs / 1000)} seconds without any`);
  }
  for (let left = spans - 1; left >= 0; left--) {
    await clock.sleep(spanMs, signal);
    const now = await look();
    calls = callsIn(now, before);
    if (calls === undefined) {
      if (left > 0) await clock.sleep(left * spanMs, signal);
      break;
    }
    before = now;
  }
  return calls;
}

/** The queues whose calls run, or came or ended since a look before; undefined when there are none. To be shown as it is. */
export function callsIn(
  now: readonly QueueTraffic[],
  before: readonly QueueTraffic[] = now,
): string | undefined {
  const formerly = new Map(before.map((traffic) => [traffic.name, traffic]));
  const busy = now.flatMap((traffic) => {
    const calls = callsOf(traffic, formerly.get(traffic.name));
    return calls === undefined ? [] : [`${traffic.name} (${calls})`];
  });
  if (busy.length === 0) return undefined;
  const named = busy.slice(0, maxNamed).join(", ");
  const others = busy.length - maxNamed;
  return printable(others > 0 ? `${named} and ${others} more` : named);
}

function callsOf(now: QueueTraffic, before: QueueTraffic | undefined): string | undefined {
  if (now.unsettled === undefined) return "unknown";
  if (now.unsettled > 0) return `${now.unsettled}`;
  // Those that waited are handed out without any that comes.
  const isStill =
    before?.unsettled === 0 && before.spooled === now.spooled && before.sizeBytes === now.sizeBytes;
  return isStill ? undefined : "ended";
}
