/**
 * A fair semaphore with a bounded queue.
 */

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

/** A fair, bounded, abortable semaphore; `await using` releases its permits. */
export class Semaphore {
  readonly capacity: number;
  readonly maxWaiting: number;
  #inUse = 0;
  /** Insertion order is the order of arrival. */
  readonly #waiters = new Set<Waiter>();

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
    return this.#waiters.size;
  }

  /** A free permit, or undefined. The caller owns it, as that of {@link acquire}. */
  tryAcquire(): Disposable | undefined {
    return this.#inUse < this.capacity ? this.#lease() : undefined;
  }

  /**
   * Waits for a permit. The caller disposes it; disposing twice is harmless. Rejects immediately
   * with SemaphoreFullError when the queue is full, and with the signal's reason on abort.
   */
  async acquire(signal: AbortSignal): Promise<Disposable> {
    signal.throwIfAborted();
    const lease = this.tryAcquire();
    if (lease !== undefined) return lease;
    if (this.#waiters.size >= this.maxWaiting) throw new SemaphoreFullError(this.maxWaiting);
    return new Promise((resolve, reject) => {
      const waiter: Waiter = {
        grant: () => {
          signal.removeEventListener("abort", onAbort);
          resolve(this.#lease());
        },
      };
      const onAbort = (): void => {
        this.#waiters.delete(waiter);
        reject(signal.reason as Error);
      };
      signal.addEventListener("abort", onAbort, { once: true });
      this.#waiters.add(waiter);
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
    const next = this.#waiters.values().next();
    if (next.done === true) return;
    this.#waiters.delete(next.value);
    next.value.grant();
  }
}
