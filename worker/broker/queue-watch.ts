/**
 * How long a session may be connected and take calls from no queue.
 */
import type { Clock } from "../support/clock.ts";
import { BrokerError } from "./broker.ts";

/** Seconds without any queue after which a session is given up, and another one is tried. */
const withoutQueueSeconds = 60;

/** What is watched over, and how a session is given up. */
export interface QueueWatchParts {
  readonly clock: Pick<Clock, "sleep">;
  /** Aborts when the session ends: nothing is watched any more. */
  readonly ended: AbortSignal;
  readonly giveUp: (cause: BrokerError) => void;
}

/** Watches one session. Needs no disposal: it ends with the session. */
export class QueueWatch {
  readonly #parts: QueueWatchParts;
  /** Ends the wait that is under way, while there is no queue. */
  #waiting: AbortController | undefined;

  constructor(parts: QueueWatchParts) {
    this.#parts = parts;
  }

  /** Says how it is now. To be told after every change; telling the same again changes nothing. */
  tell(isWithoutQueue: boolean): void {
    if (!isWithoutQueue) {
      this.#waiting?.abort();
      this.#waiting = undefined;
    } else if (this.#waiting === undefined) {
      this.#waiting = new AbortController();
      void this.#wait(this.#waiting.signal);
    }
  }

  /** Never rejects. */
  async #wait(found: AbortSignal): Promise<void> {
    const { clock, ended, giveUp } = this.#parts;
    try {
      await clock.sleep(withoutQueueSeconds * 1_000, AbortSignal.any([found, ended]));
    } catch {
      return;
    }
    const message = `No queue of the tools could be used for ${withoutQueueSeconds} seconds`;
    giveUp(new BrokerError(message, { transient: true }));
  }
}
