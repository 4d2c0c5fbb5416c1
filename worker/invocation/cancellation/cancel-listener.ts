/**
 * Receives the cancels of a namespace. Each worker receives all of them, since no caller knows
 * which worker has its call.
 */
import type { BrokerSession, BrokerSubscription, HeardMessage } from "../../broker/broker.ts";
import { cancelTopic, parseCancelTopic } from "../../protocol/topics.ts";
import type { Clock } from "../../support/clock.ts";
import { logEvent } from "../../telemetry/log-event.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { senderOf } from "./callers.ts";
import type { Cancels } from "./cancels.ts";

/** Milliseconds between two attempts to subscribe. */
export const cancelRetryMs = 30_000;

export interface CancelListenerParts {
  readonly session: Pick<BrokerSession, "subscribe">;
  readonly namespace: string;
  readonly cancels: Pick<Cancels, "receive">;
  readonly clock: Pick<Clock, "sleep">;
  readonly log: Logger;
}

/** Listens from `start` to its disposal. Without permission calls run, and cannot be cancelled. */
export class CancelListener implements AsyncDisposable {
  readonly #parts: CancelListenerParts;
  readonly #stopped = new AbortController();
  #subscription: BrokerSubscription | undefined;
  #retrying: Promise<void> | undefined;

  constructor(parts: CancelListenerParts) {
    this.#parts = parts;
  }

  /** Subscribes once; tries again in the background. Rejects with the signal's reason only. */
  async start(signal: AbortSignal): Promise<void> {
    const over = AbortSignal.any([signal, this.#stopped.signal]);
    try {
      await this.#listen(over);
    } catch (error) {
      over.throwIfAborted();
      logEvent(this.#parts.log, "cancel.listen_failed", { err: error });
      this.#retrying = this.#retry(this.#stopped.signal);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped.abort();
    await this.#retrying;
    await this.#subscription?.[Symbol.asyncDispose]();
  }

  /** Never rejects. */
  async #retry(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await this.#parts.clock.sleep(cancelRetryMs, signal);
        return await this.#listen(signal);
      } catch {
        // Logged at the first failure.
      }
    }
  }

  async #listen(signal: AbortSignal): Promise<void> {
    const { session, namespace } = this.#parts;
    const subscription = await session.subscribe(cancelTopic(namespace, ">"), signal);
    this.#subscription = subscription;
    void this.#receive(subscription);
  }

  async #receive(subscription: AsyncIterable<HeardMessage>): Promise<void> {
    const { namespace, cancels } = this.#parts;
    for await (const message of subscription) {
      const correlationId = parseCancelTopic(namespace, message.topic);
      if (correlationId !== undefined) cancels.receive(correlationId, senderOf(message));
    }
  }
}
