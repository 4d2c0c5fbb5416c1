/**
 * Requests that tidy up after a save: no parts, no reservation and no damaged object stays. A
 * server that answers nothing does not hold up an aborted save with them.
 */
import { systemClock } from "../../support/clock.ts";
import { abortable, settlesWithin } from "../../support/timeout.ts";

/** Milliseconds of a request that tidies up. */
const requestTimeoutMs = 5_000;

/** Milliseconds that a save waits for one of them after its abort. */
const abortedWaitMs = 500;

/**
 * The requests of a store that tidy up. Each save has two at most, and callers limit saves: a
 * worker has `maxTransfers` at a time. Disposing waits for those that are under way.
 */
export class CleanUps implements AsyncDisposable {
  readonly #running = new Set<Promise<boolean>>();

  /**
   * Whether `work` succeeded in time. After an abort of the save's signal it goes on alone. `work`
   * gets another signal, which that abort leaves alone. Never rejects.
   */
  async run(
    work: (signal: AbortSignal) => Promise<unknown>,
    saving: AbortSignal,
  ): Promise<boolean> {
    const done = work(AbortSignal.timeout(requestTimeoutMs)).then(
      () => true,
      () => false,
    );
    this.#running.add(done);
    void done.then(() => this.#running.delete(done));
    await abortable(done, saving).catch(() => undefined);
    return (await settlesWithin(done, abortedWaitMs, systemClock)) && (await done);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#running);
  }
}
