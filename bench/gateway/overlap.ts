/**
 * How much is done at one moment.
 */

/** From when to when something was done, by one clock. */
export type Span = readonly [start: number, end: number];

/** The most spans that have a moment in common; one that ends when another starts has none. */
export function mostAtOnce(spans: readonly Span[]): number {
  const changes = spans.flatMap(([start, end]) => [[start, 1] as const, [end, -1] as const]);
  let now = 0;
  let most = 0;
  for (const [, change] of changes.toSorted(([a, up], [b, down]) => a - b || up - down)) {
    now += change;
    most = Math.max(most, now);
  }
  return most;
}
