/**
 * Answers on their way out, and what becomes of a call by what the broker says of its answer.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import { BrokerError, type BrokerSession, type Settlement } from "../broker/broker.ts";
import { InvocationError } from "../protocol/errors.ts";
import { encodeResponse } from "../protocol/response.ts";
import { logEvent } from "../telemetry/log-event.ts";
import type { Logger } from "../telemetry/logger.ts";

/** An answer as it is published. */
export interface Reply {
  /** That of the request. */
  readonly id: string;
  readonly payload: Uint8Array;
  /** Whether the broker has confirmed it and did not report that nobody was there to get it. */
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

/** Ends a publication: another worker has answered while the answer waited for the broker. */
export class OvertakenError extends Error {
  constructor() {
    super("another worker has answered the call");
    this.name = "OvertakenError";
  }
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
 * | does not take it in all attempts of the session, or before the worker stops | `failed`: it comes again, here or elsewhere |
 * | is gone for good                             | is not settled, and so comes again elsewhere                |
 * | is away until another worker has answered    | is not settled: it is lost to this worker                   |
 */
export class Answers {
  readonly #session: Pick<BrokerSession, "publish" | "closed">;
  readonly #log: Logger;
  #unroutable = 0;

  constructor(session: Pick<BrokerSession, "publish" | "closed">, log: Logger) {
    this.#session = session;
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
    try {
      const outcome = await this.#session.publish({ ...to, payload, isRetried: true }, signal);
      if (outcome === "unroutable") this.#countUnroutable(topic);
      const isDelivered = outcome === "confirmed";
      return { settlement: "accepted", reply: { ...reply, isDelivered } };
    } catch (error) {
      if (error instanceof OvertakenError) return { settlement: undefined, reply };
      const bytes = payload.byteLength;
      logEvent(this.#log, "answer.publish_failed", { err: error, topic, bytes });
      if (await this.#hasEnded()) return { settlement: undefined, reply };
      const isFinal = error instanceof BrokerError && !error.transient;
      return { settlement: isFinal ? "rejected" : "failed", reply };
    }
  }

  #countUnroutable(topic: string): void {
    this.#unroutable++;
    logEvent(this.#log, "answer.unroutable", { topic, unroutable: this.#unroutable });
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
