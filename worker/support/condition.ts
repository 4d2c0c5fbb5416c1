/**
 * A change that loops wait for.
 */

/** Wakes every waiting loop, which then checks what it waits for. */
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
