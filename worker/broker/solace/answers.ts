/**
 * Requests to the broker that have no answer yet. The answer carries the key of its request.
 */

/** Waiting requests by key. Their senders bound how many there are. */
export class Answers {
  readonly #waiting = new Map<string, PromiseWithResolvers<void>>();
  #keys = 0;

  expect(): { readonly key: string; readonly answer: Promise<void> } {
    const waiting = Promise.withResolvers<void>();
    const key = `${++this.#keys}`;
    this.#waiting.set(key, waiting);
    return { key, answer: waiting.promise };
  }

  isExpected(key: string): boolean {
    return this.#waiting.has(key);
  }

  /** A later answer is ignored. */
  forget(key: string): void {
    this.#waiting.delete(key);
  }

  succeed(key: string | undefined): void {
    this.#take(key)?.resolve();
  }

  fail(key: string | undefined, reason: unknown): void {
    this.#take(key)?.reject(reason);
  }

  #take(key = ""): PromiseWithResolvers<void> | undefined {
    const waiting = this.#waiting.get(key);
    this.#waiting.delete(key);
    return waiting;
  }
}
