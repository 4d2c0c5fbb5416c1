/**
 * What the broker has been asked and not answered yet. Requests carry a key, which comes back with
 * the answer.
 */

/** Who waits for an answer. */
interface Asker {
  resolve(): void;
  reject(reason: unknown): void;
}

/** Waiting askers by key. Whoever asks bounds how many there are. */
export class Answers {
  readonly #askers = new Map<string, Asker>();
  #keys = 0;

  /** A key for a new request, and what will be answered to it. */
  expect(): { readonly key: string; readonly answer: Promise<void> } {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const key = `${++this.#keys}`;
    this.#askers.set(key, { resolve, reject });
    return { key, answer: promise };
  }

  /** Whether somebody waits for the answer to the request with this key. */
  isExpected(key: string): boolean {
    return this.#askers.has(key);
  }

  /** Nobody waits any more; an answer that comes after all is overlooked. */
  forget(key: string): void {
    this.#askers.delete(key);
  }

  /** The request with this key was carried out. */
  succeed(key: string | undefined): void {
    this.#take(key)?.resolve();
  }

  /** The request with this key was refused. */
  fail(key: string | undefined, reason: unknown): void {
    this.#take(key)?.reject(reason);
  }

  #take(key: string | undefined): Asker | undefined {
    const asker = this.#askers.get(key ?? "");
    this.#askers.delete(key ?? "");
    return asker;
  }
}
