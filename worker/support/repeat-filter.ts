/**
 * Says the same thing less and less often.
 */
import type { Clock } from "./clock.ts";

/**
 * Milliseconds between two times that the same text is news: the first interval, which doubles, and
 * the longest.
 */
const intervalMs = { first: 1_000, longest: 300_000 } as const;

/** Texts that are remembered; of more, the oldest go. */
const maxTexts = 100;

/** When a text is news again, and for how long it then is none. */
interface Repeat {
  readonly dueAtMs: number;
  readonly nextMs: number;
}

/**
 * Whether a text is news: the first time, at growing intervals while it is repeated, and after it
 * was not for long.
 */
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
