/**
 * Leases with a bound: at most so many at once, at most so many waiting, in the order they asked.
 */

/** Every place is taken and the line is full. */
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

/** A fair, bounded, abortable semaphore whose leases are given back by `await using`. */
export class Semaphore {
  readonly capacity: number;
  readonly maxWaiting: number;
  #inUse = 0;
  /** Insertion order is the order of arrival. */
  readonly #waiters = new Set<Waiter>();

  constructor(options: { capacity: number; maxWaiting: number }) {
    this.capacity = options.capacity;
    this.maxWaiting = options.maxWaiting;
  }

  /** Leases that are out now. */
  get inUse(): number {
    return this.#inUse;
  }

  /** How many are in line. */
  get waiting(): number {
    return this.#waiters.size;
  }

  /** A lease if one is free now. The caller owns it, as that of {@link acquire}. */
  tryAcquire(): Disposable | undefined {
    return this.#inUse < this.capacity ? this.#lease() : undefined;
  }

  /**
   * Waits for a lease. The caller owns it and disposes it; disposing twice is harmless. Rejects at
   * once with SemaphoreFullError when the line is full, and with the signal's reason when it
   * aborts.
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
