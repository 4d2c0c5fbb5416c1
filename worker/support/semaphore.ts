/**
 * A semaphore with a bounded queue, fair within each priority.
 */

/** Which waiter gets the next permit: the first of the highest priority. */
export const priorities = { returning: 3, inner: 2, nested: 1, new: 0 } as const;
export type Priority = keyof typeof priorities;

/** All permits are taken, and the queue is full. */
export class SemaphoreFullError extends Error {
  readonly maxWaiting: number;

  constructor(maxWaiting: number) {
    super(`all slots are taken and ${maxWaiting} are waiting already`);
    this.name = "SemaphoreFullError";
    this.maxWaiting = maxWaiting;
  }
}

interface Waiter {
  grant(): void;
}

/** A bounded, abortable semaphore. */
export class Semaphore {
  readonly capacity: number;
  readonly maxWaiting: number;
  #inUse = 0;
  /** By priority; insertion order is the order of arrival. */
  readonly #waiters = Object.keys(priorities).map(() => new Set<Waiter>());

  /** @param options `maxWaiting` is Infinity where callers limit the queue; say there which */
  constructor(options: { capacity: number; maxWaiting: number }) {
    this.capacity = options.capacity;
    this.maxWaiting = options.maxWaiting;
  }

  /** Number of taken permits. */
  get inUse(): number {
    return this.#inUse;
  }

  /** Length of the queue. */
  get waiting(): number {
    return this.#waiters.reduce((sum, { size }) => sum + size, 0);
  }

  /** A free permit, or undefined. The caller owns it, as that of {@link acquire}. */
  tryAcquire(): Disposable | undefined {
    return this.#inUse < this.capacity ? this.#lease() : undefined;
  }

  /**
   * Waits for a permit. The caller disposes it; disposing twice is harmless. Rejects immediately
   * with SemaphoreFullError when the queue is full, and with the signal's reason on abort. Callers
   * bound the waiters that return, and inner ones.
   */
  async acquire(signal: AbortSignal, priority: Priority = "new"): Promise<Disposable> {
    signal.throwIfAborted();
    const lease = this.tryAcquire();
    if (lease !== undefined) return lease;
    const isBounded = priority === "nested" || priority === "new";
    if (isBounded && this.waiting >= this.maxWaiting) throw new SemaphoreFullError(this.maxWaiting);
    const waiters = this.#waiters[priorities[priority]] ?? new Set();
    return new Promise((resolve, reject) => {
      const waiter: Waiter = {
        grant: () => {
          signal.removeEventListener("abort", onAbort);
          resolve(this.#lease());
        },
      };
      const onAbort = (): void => {
        waiters.delete(waiter);
        reject(signal.reason as Error);
      };
      signal.addEventListener("abort", onAbort, { once: true });
      waiters.add(waiter);
    });
  }

  #lease(): Disposable {
    this.#inUse++;
    let isOut = true;
    return {
      [Symbol.dispose]: () => {
        if (!isOut) return;
        isOut = false;
        this.#inUse--;
        this.#grantNext();
      },
    };
  }

  #grantNext(): void {
    const waiters = this.#waiters.findLast(({ size }) => size > 0);
    const [next] = waiters ?? [];
    if (next === undefined) return;
    waiters?.delete(next);
    next.grant();
  }
}
