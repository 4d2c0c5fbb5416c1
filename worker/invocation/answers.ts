/**
 * Publishes answers; the broker's confirmation decides the settlement of the call.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import { BrokerError, type BrokerSession, type Settlement } from "../broker/broker.ts";
import { type ArtifactVersion, type ErrorCode, InvocationError } from "../protocol/errors.ts";
import { encodeResponse } from "../protocol/messages/response.ts";
import { logEvent } from "../telemetry/log-event.ts";
import type { Logger } from "../telemetry/logger.ts";

/** A response ready to publish. */
export interface EncodedResponse {
  /** Id of the request. */
  readonly id: string;
  readonly payload: Uint8Array;
  /** Outputs of the call that the store has. */
  readonly artifacts?: readonly ArtifactVersion[];
  /** Whether the broker has confirmed it, and has not reported it as unroutable. */
  readonly isDelivered?: boolean;
}

/** Destination of an answer, from its request. */
export interface Recipient {
  readonly topic: string;
  readonly correlationId?: string;
  /** User properties. */
  readonly properties?: Readonly<Record<string, string>>;
}

/** Result of a publication. */
export interface PublishResult {
  /** Undefined leaves the call's deliveries to the broker. */
  readonly settlement: Settlement | undefined;
  /** The response to publish when the call is delivered again. */
  readonly response: EncodedResponse;
  /** Of the error that was published in place of a response that is too large. */
  readonly replacedBy?: ErrorCode;
}

/** Aborts a publication: another worker has answered the call. */
export class OvertakenError extends Error {
  constructor() {
    super("another worker has answered the call");
    this.name = "OvertakenError";
  }
}

/**
 * Publishes answers. The caller settles the deliveries of a call afterwards:
 *
 * | the broker                                   | settlement of the call                                      |
 * |----------------------------------------------|-------------------------------------------------------------|
 * | confirms the answer                          | `accepted`                                                  |
 * | reports it as unroutable                     | `accepted`; logged and counted                              |
 * | refuses it for good, because it is too large | `accepted`, when it confirms a short error in its place     |
 * | refuses that too                             | `rejected`                                                  |
 * | refuses all attempts of the session, or the worker stops before | `failed`: the broker redelivers the call |
 * | is gone for good                             | none: the broker redelivers the call to another worker      |
 * | is away until another worker has answered    | none: the delivery is lost to this worker                   |
 */
export class Answers {
  readonly #session: Pick<BrokerSession, "publish" | "closed">;
  readonly #log: Logger;
  #unroutable = 0;

  constructor(session: Pick<BrokerSession, "publish" | "closed">, log: Logger) {
    this.#session = session;
    this.#log = log;
  }

  /** Answers that the broker reported as unroutable. */
  get unroutable(): number {
    return this.#unroutable;
  }

  /**
   * Never throws. The signal ends the attempts.
   *
   * @param log the call's
   */
  async publish(
    to: Recipient,
    response: EncodedResponse,
    signal: AbortSignal,
    log = this.#log,
  ): Promise<PublishResult> {
    const result = await this.#send(to, response, signal, log);
    if (result.settlement !== "rejected") return result;
    const replacement = tooLargeResponse(response);
    return { ...(await this.#send(to, replacement, signal, log)), replacedBy: tooLargeCode };
  }

  /** Settlement `rejected`: the broker refuses the answer for good. */
  async #send(
    to: Recipient,
    response: EncodedResponse,
    signal: AbortSignal,
    log: Logger,
  ): Promise<PublishResult> {
    const { topic } = to;
    const { id, payload } = response;
    try {
      const outcome = await this.#session.publish({ ...to, payload, isRetried: true }, signal);
      if (outcome === "unroutable") {
        this.#unroutable++;
        logEvent(log, "answer.unroutable", { id, topic, unroutable: this.#unroutable });
      }
      const isDelivered = outcome === "confirmed";
      return { settlement: "accepted", response: { ...response, isDelivered } };
    } catch (error) {
      if (error instanceof OvertakenError) return { settlement: undefined, response };
      const bytes = payload.byteLength;
      logEvent(log, "answer.publish_failed", { id, err: error, topic, bytes });
      if (await this.#hasEnded()) return { settlement: undefined, response };
      const isFinal = error instanceof BrokerError && !error.transient;
      return { settlement: isFinal ? "rejected" : "failed", response };
    }
  }

  /** An ended session resolves `closed` in the same turn in which it rejects its publications. */
  #hasEnded(): Promise<boolean> {
    return Promise.race([this.#session.closed.then(() => true), nextTurn(false)]);
  }
}

const tooLargeCode = "RESOURCE_EXHAUSTED";

/** Replaces an answer that the broker refuses for its size. It names the outputs that exist. */
function tooLargeResponse({ id, payload, artifacts = [] }: EncodedResponse): EncodedResponse {
  const error = new InvocationError(
    tooLargeCode,
    `The broker does not take the answer, which has ${payload.byteLength} bytes. Return large data as an artifact.`,
    { remainingArtifacts: artifacts },
  );
  return { id, payload: encodeResponse(id, { kind: "error", error, executionTimeMs: 0 }) };
}
