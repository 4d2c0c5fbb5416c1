/**
 * Suppresses repeated messages at growing intervals.
 */
import type { Clock } from "./clock.ts";

/** First and longest interval between two passes of a text, in milliseconds; it doubles. */
const intervalMs = { first: 1_000, longest: 300_000 } as const;

/** Largest number of remembered texts; the oldest are dropped. */
const maxTexts = 100;

/** Time of a text's next pass, and the interval after it. */
interface Repeat {
  readonly dueAtMs: number;
  readonly nextMs: number;
}

/** Passes a text the first time, at growing intervals during its repetition, and after a pause. */
export function createRepeatFilter(clock: Pick<Clock, "monotonicMs">): (text: string) => boolean {
  const texts = new Map<string, Repeat>();
  return (text) => {
    const nowMs = clock.monotonicMs();
    const last = texts.get(text);
    if (last !== undefined && nowMs < last.dueAtMs) return false;
    const isRepeated = last !== undefined && nowMs < last.dueAtMs + intervalMs.longest;
    const nowQuietMs = isRepeated ? last.nextMs : intervalMs.first;
    texts.delete(text);
    texts.set(text, {
      dueAtMs: nowMs + nowQuietMs,
      nextMs: Math.min(nowQuietMs * 2, intervalMs.longest),
    });
    const [oldest] = texts.keys();
    if (texts.size > maxTexts && oldest !== undefined) texts.delete(oldest);
    return true;
  };
}
