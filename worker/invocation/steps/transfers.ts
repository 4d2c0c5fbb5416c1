/**
 * Bounds on artifacts of calls: their sizes, their number, and concurrent transfers.
 *
 * Each bound limits what waits for the next: slots limit calls, a call has at most `maxLoading` or
 * `maxSaving` transfers at a time, and `maxTransfers` of them run. So at most slots times
 * `maxLoading` transfers wait here, and fewer than `maxTransfers` wait for a kernel copy or for the
 * buffers of an upload. Those queues have no bound of their own: it would never be reached.
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
  /** Calls limit the queue. */
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
