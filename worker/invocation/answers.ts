/**
 * Answers on their way out, and what becomes of a call by what the broker says of its answer.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import { BrokerError, type BrokerSession, type Settlement } from "../broker/broker.ts";
import { InvocationError } from "../protocol/errors.ts";
import { encodeResponse } from "../protocol/response.ts";
import type { Clock } from "../support/clock.ts";
import { settlesWithin } from "../support/within.ts";
import type { Logger } from "../telemetry/logger.ts";

/** Attempts to publish an answer at the last of the delays. */
const lateAttempts = 16;

/**
 * Milliseconds between attempts to publish an answer that the broker does not take now, a minute
 * and a half in all. When they are used up the call goes back to the broker, which hands it out
 * again at once, perhaps to a worker that runs it once more: so a queue that is full for a while is
 * waited for. Meanwhile the call counts as one that this worker has in hand.
 */
export const retryDelaysMs: readonly number[] = [
  ...[250, 500, 1_000, 2_000, 4_000],
  ...Array.from({ length: lateAttempts }, () => 5_000),
];

/** An answer as it is published. */
export interface Reply {
  /** That of the request. */
  readonly id: string;
  readonly payload: Uint8Array;
  /** Whether the broker has confirmed it and found somebody to get it. */
  readonly isDelivered?: boolean;
}

/** Where an answer goes, as its request says. */
export interface Recipient {
  readonly topic: string;
  readonly correlationId?: string;
}

/** What became of an answer. */
export interface Published {
  /**
   * How the deliveries of its call are to be settled; undefined: not at all, the session has ended.
   */
  readonly settlement: Settlement | undefined;
  /** What the caller got, or what is to be sent when the call is delivered again. */
  readonly reply: Reply;
}

/**
 * Publishes answers. No delivery of a call is to be settled before its answer.
 *
 * | the broker                                   | the call                                                    |
 * |----------------------------------------------|-------------------------------------------------------------|
 * | has the answer                               | `accepted`                                                  |
 * | has it, and nobody is there to get it        | `accepted`; logged and counted                              |
 * | will never take it, because it is too large  | `accepted`, when it took a short error in its place         |
 * | will never take that either                  | `rejected`                                                  |
 * | does not take it in several attempts, or before the worker stops | `failed`: it comes again, here or elsewhere |
 * | is gone for good                             | is not settled, and so comes again elsewhere                |
 */
export class Answers {
  readonly #session: Pick<BrokerSession, "publish" | "closed">;
  readonly #clock: Pick<Clock, "sleep">;
  readonly #log: Logger;
  #unroutable = 0;

  constructor(
    session: Pick<BrokerSession, "publish" | "closed">,
    clock: Pick<Clock, "sleep">,
    log: Logger,
  ) {
    this.#session = session;
    this.#clock = clock;
    this.#log = log;
  }

  /** How many answers nobody was there for. */
  get unroutable(): number {
    return this.#unroutable;
  }

  /** Never throws. When the signal aborts it gives up. */
  async publish(to: Recipient, reply: Reply, signal: AbortSignal): Promise<Published> {
    const published = await this.#send(to, reply, signal);
    return published.settlement === "rejected"
      ? await this.#send(to, refusedReply(reply), signal)
      : published;
  }

  /** The settlement is `rejected` when the broker will never take the answer. */
  async #send(to: Recipient, reply: Reply, signal: AbortSignal): Promise<Published> {
    const { topic } = to;
    const { payload } = reply;
    const delays = retryDelaysMs.values();
    for (;;) {
      try {
        const outcome = await this.#session.publish({ ...to, payload }, signal);
        if (outcome === "unroutable") this.#countUnroutable(topic);
        const isDelivered = outcome === "confirmed";
        return { settlement: "accepted", reply: { ...reply, isDelivered } };
      } catch (error) {
        const bytes = payload.byteLength;
        this.#log.error({ err: error, topic, bytes }, "answer could not be published");
        if (await this.#hasEnded()) return { settlement: undefined, reply };
        if (!(error instanceof BrokerError)) return { settlement: "failed", reply };
        if (!error.transient) return { settlement: "rejected", reply };
        const delayMs = delays.next().value;
        if (delayMs === undefined) return { settlement: "failed", reply };
        // Whatever ends it: the next attempt tells what became of the session, and of the signal.
        await settlesWithin(this.#session.closed, delayMs, this.#clock, signal);
      }
    }
  }

  #countUnroutable(topic: string): void {
    this.#unroutable++;
    this.#log.warn({ topic, unroutable: this.#unroutable }, "nobody was there for an answer");
  }

  /**
   * Whether the session has ended by now. It says so in the turn in which it fails what waits for
   * it.
   */
  #hasEnded(): Promise<boolean> {
    return Promise.race([this.#session.closed.then(() => true), nextTurn(false)]);
  }
}

/** What goes out in the place of an answer that the broker will never take. */
function refusedReply({ id, payload }: Reply): Reply {
  const error = new InvocationError(
    "RESOURCE_EXHAUSTED",
    `The broker does not take the answer, which has ${payload.byteLength} bytes. Return large data as an artifact.`,
  );
  return { id, payload: encodeResponse(id, { kind: "error", error, executionTimeMs: 0 }) };
}
