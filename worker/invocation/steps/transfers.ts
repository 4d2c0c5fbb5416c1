/**
 * Bounds on artifacts of calls: their sizes, their number, and concurrent transfers.
 */
import { mapConcurrently } from "../../support/concurrent.ts";
import { Semaphore } from "../../support/semaphore.ts";

/**
 * Concurrent transfers of all calls. The S3 store has twice as many connections: listings, marks
 * and checks wait for none of these.
 */
export const maxTransfers = 32;

/** Bounds of one call. */
export interface ArtifactLimits {
  /** Bytes of an artifact. */
  readonly maxBytes: number;
  /** Bytes of the inputs together, and of the outputs together. */
  readonly callMaxBytes: number;
  readonly maxOutputs: number;
}

/** Runs the transfers of all calls. */
export class Transfers {
  /** A running call waits with few transfers, so that slots bound the queue. */
  readonly #permits = new Semaphore({ capacity: maxTransfers, maxWaiting: Infinity });

  /** Transfers items of one call, at most `maxRunning` at once; see {@link mapConcurrently}. */
  map<Item, Result>(
    items: readonly Item[],
    maxRunning: number,
    signal: AbortSignal,
    transfer: (item: Item, signal: AbortSignal) => Promise<Result>,
  ): Promise<Result[]> {
    return mapConcurrently(items, maxRunning, signal, async (item, ending) => {
      using _permit = await this.#permits.acquire(ending);
      return await transfer(item, ending);
    });
  }
}
