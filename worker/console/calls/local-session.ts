/**
 * A session that has the console's calls among its deliveries, and keeps their answers from the
 * broker: they pass the worker as all calls do, and need no permission of the broker's.
 */
import type {
  ConsumedSession,
  Delivery,
  OutboundMessage,
  PublishOutcome,
  Settlement,
} from "../../broker/broker.ts";
import { Condition } from "../../support/condition.ts";

/** Calls without an end, at most: brokers bound only their own. */
const maxOpen = 100;

/** A call that does not come through the broker. */
export interface LocalCall {
  /** Of the tool's calls. */
  readonly topic: string;
  /** Where its answer goes; no other call has it. */
  readonly replyTo: string;
  readonly payload: Uint8Array;
  /** Takes its answer. */
  readonly onAnswer: (payload: Uint8Array) => void;
  /** Told how it was settled, after the answer if there is one. */
  readonly onSettled: (outcome: Settlement) => void;
}

/** The deliveries of a session and of the console. */
export class LocalCalls {
  readonly #waiting: Delivery[] = [];
  readonly #open = new Map<string, LocalCall>();
  readonly #changed = new Condition();
  #isPaused = false;

  /** Delivers a call; false while too many are open, and once no more are taken. */
  deliver(call: LocalCall): boolean {
    if (this.#isPaused || this.#open.size >= maxOpen) return false;
    this.#open.set(call.replyTo, call);
    this.#waiting.push(this.#deliveryOf(call));
    this.#changed.notify();
    return true;
  }

  /** What the consumer has of the session. The caller keeps the session. */
  joined(session: ConsumedSession): ConsumedSession {
    const { redelivers, mayReplay, closed } = session;
    return {
      redelivers,
      ...(mayReplay !== undefined && { mayReplay }),
      closed,
      deliveries: { [Symbol.asyncIterator]: () => this.#merge(session.deliveries) },
      publish: (message, signal) => this.#publish(session, message, signal),
      subscribe: (pattern, signal) => session.subscribe(pattern, signal),
      pause: () => {
        this.#isPaused = true;
        return session.pause();
      },
    };
  }

  async *#merge(remote: AsyncIterable<Delivery>): AsyncGenerator<Delivery, void> {
    const iterator = remote[Symbol.asyncIterator]();
    let arriving: Promise<void> | undefined;
    let arrived: IteratorResult<Delivery> | undefined;
    let failure: { readonly error: unknown } | undefined;
    using _end = { [Symbol.dispose]: () => void (this.#isPaused = true) };
    for (;;) {
      const local = this.#waiting.shift();
      if (local !== undefined) {
        yield local;
        continue;
      }
      if (failure !== undefined) throw failure.error;
      if (arrived !== undefined) {
        if (arrived.done === true) return;
        const { value } = arrived;
        [arrived, arriving] = [undefined, undefined];
        yield value;
        continue;
      }
      arriving ??= iterator
        .next()
        .then(
          (result) => void (arrived = result),
          (error: unknown) => void (failure = { error }),
        )
        .finally(() => this.#changed.notify());
      await this.#changed.changed;
    }
  }

  async #publish(
    session: Pick<ConsumedSession, "publish">,
    message: OutboundMessage,
    signal: AbortSignal,
  ): Promise<PublishOutcome> {
    const call = this.#open.get(message.topic);
    if (call === undefined) return session.publish(message, signal);
    call.onAnswer(message.payload);
    return "confirmed";
  }

  #deliveryOf(call: LocalCall): Delivery {
    const { topic, replyTo, payload } = call;
    return {
      topic,
      payload,
      redelivered: false,
      deliveryCount: 1,
      maxDeliveries: undefined,
      properties: { replyTo },
      settle: async (outcome) => {
        if (this.#open.delete(replyTo)) call.onSettled(outcome);
      },
    };
  }
}
