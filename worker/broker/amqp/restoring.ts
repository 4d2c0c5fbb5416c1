/**
 * Queues that cannot be used, and are tried again until they can.
 */
import { backoffDelays } from "../../support/backoff.ts";
import type { Clock } from "../../support/clock.ts";
import type { BrokerError } from "../broker.ts";
import type { BrokerLog } from "../log.ts";
import { replyCodeOf } from "./failures.ts";

/** Bounds of the delay before a queue that cannot be used is tried again. */
const retryBackoff = { baseMs: 500, capMs: 60_000 };

/** What restoring takes. */
export interface RestoringParts {
  /** The tools that are to be served through a queue. */
  toolsOf(queue: string): readonly string[];
  /** Has the calls of a tool come through its queue. Throws BrokerError. */
  attach(tool: string): Promise<void>;
  /** Aborts when nothing is to be served any more. */
  readonly over: AbortSignal;
  readonly clock: Clock;
  readonly log: BrokerLog;
}

/** The queues of one session. */
export class Restoring {
  readonly #parts: RestoringParts;
  /** Delays of the queues that cannot be used, or could not lately. */
  readonly #delays = new Map<string, Generator<number, never, void>>();
  /** Queues that are being tried again. */
  readonly #queues = new Set<string>();

  constructor(parts: RestoringParts) {
    this.#parts = parts;
  }

  /** Tries a queue again until what comes through it is served, or nobody wants that any more. Never rejects. */
  async restore(queue: string, cause: BrokerError): Promise<void> {
    if (this.#queues.has(queue)) return;
    this.#queues.add(queue);
    try {
      await this.#retry(queue, cause);
    } catch (error) {
      if (!this.#parts.over.aborted) throw error;
    } finally {
      this.#queues.delete(queue);
    }
  }

  /** A queue could be used for long: its next failure is the first again. */
  forget(queue: string): void {
    this.#delays.delete(queue);
  }

  async #retry(queue: string, cause: BrokerError): Promise<void> {
    const { toolsOf, attach, over, clock, log } = this.#parts;
    const delays = this.#delaysOf(queue);
    for (let failure = cause; ;) {
      const tools = toolsOf(queue);
      if (tools.length === 0) return;
      const delayMs = Math.round(delays.next().value);
      const code = replyCodeOf(failure.cause);
      log.warn({ tools, queue, code, delayMs, err: failure }, "queue cannot be used");
      await clock.sleep(delayMs, over);
      const results = await Promise.allSettled(toolsOf(queue).map((tool) => attach(tool)));
      const failed = results.find(({ status }) => status === "rejected");
      if (failed === undefined) return log.info({ queue }, "queue can be used again");
      over.throwIfAborted();
      failure = (failed as PromiseRejectedResult).reason as BrokerError;
    }
  }

  #delaysOf(queue: string): Generator<number, never, void> {
    const delays =
      this.#delays.get(queue) ?? backoffDelays({ ...retryBackoff, random: Math.random });
    this.#delays.set(queue, delays);
    return delays;
  }
}
