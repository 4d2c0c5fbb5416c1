/**
 * Work whose result is to be newer than each request for it: requests that arrive while it runs
 * share the next run.
 */
export class SharedNext<Result> {
  readonly #work: () => Promise<Result>;
  #running: Promise<Result> | undefined;
  #next: Promise<Result> | undefined;

  constructor(work: () => Promise<Result>) {
    this.#work = work;
  }

  /** The result of a run that starts after this call. */
  run(): Promise<Result> {
    if (this.#running === undefined) return this.#start();
    this.#next ??= this.#running.then(
      () => this.#start(),
      () => this.#start(),
    );
    return this.#next;
  }

  #start(): Promise<Result> {
    this.#next = undefined;
    const running = this.#work().finally(() => {
      if (this.#running === running) this.#running = undefined;
    });
    this.#running = running;
    return running;
  }
}
