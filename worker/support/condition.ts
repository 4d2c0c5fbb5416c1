/**
 * A change that loops wait for.
 */

/** Wakes all who wait; they look themselves whether it is what they wait for. */
export class Condition {
  #change = Promise.withResolvers<void>();

  /** Resolves at the next `notify`. */
  get changed(): Promise<void> {
    return this.#change.promise;
  }

  notify(): void {
    this.#change.resolve();
    this.#change = Promise.withResolvers();
  }
}
