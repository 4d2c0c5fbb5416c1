/**
 * Answers to what this worker asks of others: one subscription for all, told apart by the last
 * level of the topic.
 */
import type { BrokerSession, BrokerSubscription, HeardMessage } from "../../broker/broker.ts";
import { responseTopic } from "../../protocol/topics.ts";
import { newId, newUuid } from "../../support/ids.ts";
import { abortable } from "../../support/timeout.ts";
import { logEvent } from "../../telemetry/log-event.ts";
import type { Logger } from "../../telemetry/logger.ts";

/** Dependencies of {@link Replies}. */
export interface RepliesParts {
  readonly session: Pick<BrokerSession, "subscribe">;
  readonly namespace: string;
  readonly log: Logger;
}

/** An answer that is waited for. Disposal forgets it. */
export interface ExpectedReply extends Disposable {
  /** A uuid4, which nobody else can guess. */
  readonly id: string;
  readonly replyTo: string;
  /** The first answer. Never rejects, and stays pending without one. */
  readonly answered: Promise<HeardMessage>;
}

/** Its owner disposes it before the session. Callers bound the answers that are waited for. */
export class Replies implements AsyncDisposable {
  /** Of this process in the topics of its answers, as an agent has a name. */
  readonly name = `worker_${newId()}`;
  readonly #parts: RepliesParts;
  readonly #expected = new Map<string, (message: HeardMessage) => void>();
  readonly #end = new AbortController();
  #opening: Promise<BrokerSubscription> | undefined;
  #ignored = 0;

  constructor(parts: RepliesParts) {
    this.#parts = parts;
  }

  /** Resolves when answers can arrive. Rejects with BrokerError, or the signal's reason. */
  async start(signal: AbortSignal): Promise<void> {
    this.#opening ??= this.#open();
    await abortable(this.#opening, signal);
  }

  /** Expects an answer from now on. */
  expect(): ExpectedReply {
    const id = newUuid();
    const { promise: answered, resolve } = Promise.withResolvers<HeardMessage>();
    this.#expected.set(id, resolve);
    const replyTo = responseTopic(this.#parts.namespace, this.name, id);
    return { id, replyTo, answered, [Symbol.dispose]: () => void this.#expected.delete(id) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#end.abort(new Error("answers are no longer waited for"));
    const subscription = await this.#opening?.catch(() => undefined);
    await subscription?.[Symbol.asyncDispose]();
  }

  async #open(): Promise<BrokerSubscription> {
    const { session, namespace } = this.#parts;
    try {
      const pattern = responseTopic(namespace, this.name, ">");
      const subscription = await session.subscribe(pattern, this.#end.signal);
      void this.#receive(subscription);
      return subscription;
    } catch (error) {
      // The next one tries again.
      this.#opening = undefined;
      throw error;
    }
  }

  async #receive(subscription: BrokerSubscription): Promise<void> {
    const base = responseTopic(this.#parts.namespace, this.name, "");
    for await (const message of subscription) {
      const id = message.topic.slice(base.length);
      const settle = this.#expected.get(id);
      // Only the first answer counts.
      this.#expected.delete(id);
      if (settle !== undefined) settle(message);
      else logEvent(this.#parts.log, "remote_tools.answer_ignored", { ignored: ++this.#ignored });
    }
  }
}
