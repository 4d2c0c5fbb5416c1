/**
 * Bounded concurrency over a list.
 */

/**
 * Maps items with at most `maxRunning` calls of `map` at once; results keep the items' order. The
 * first failure or the signal aborts the others. Rejects with its error when all have settled.
 */
export async function mapConcurrently<Item, Result>(
  items: readonly Item[],
  maxRunning: number,
  signal: AbortSignal,
  map: (item: Item, signal: AbortSignal) => Promise<Result>,
): Promise<Result[]> {
  const failure = new AbortController();
  const ending = AbortSignal.any([signal, failure.signal]);
  const results: Result[] = [];
  const queue = items.entries();
  const work = async (): Promise<void> => {
    for (const [index, item] of queue) {
      ending.throwIfAborted();
      results[index] = await map(item, ending);
    }
  };
  const workers = Array.from({ length: Math.min(maxRunning, items.length) }, () =>
    // Only the first abort has an effect: the others fail because of it.
    work().catch((error: unknown) => failure.abort(error)),
  );
  await Promise.all(workers);
  failure.signal.throwIfAborted();
  return results;
}
