/**
 * Direct subscriptions of a session, shared by its listeners: the broker sends a message once,
 * however many patterns of a session match.
 */
import type solace from "solclientjs";
import { topicMatches } from "../../protocol/topics.ts";
import { abortable } from "../../support/timeout.ts";
import type { BrokerSubscription, HeardMessage } from "../broker.ts";
import { SubscriptionBuffer } from "../subscription-buffer.ts";
import type { SolaceConnection } from "./connection.ts";
import { toTopic } from "./library/library.ts";
import { requestTimeoutMs } from "./login.ts";
import { payloadOf, propertiesOf, topicOf } from "./messages.ts";

type Listener = SubscriptionBuffer<HeardMessage>;

interface Subscribed {
  readonly listeners: Set<Listener>;
  readonly confirmed: Promise<void>;
}

export class Subscriptions {
  readonly #connection: SolaceConnection;
  readonly #patterns = new Map<string, Subscribed>();

  constructor(connection: SolaceConnection) {
    this.#connection = connection;
    connection.onMessage((message) => this.#receive(message));
  }

  async subscribe(pattern: string, signal: AbortSignal): Promise<BrokerSubscription> {
    const { ended } = this.#connection;
    const over = AbortSignal.any([signal, ended]);
    over.throwIfAborted();
    await using stack = new AsyncDisposableStack();
    const release = (): Promise<void> => this.#release(pattern, listener);
    const listener: Listener = stack.use(new SubscriptionBuffer({ ended, release }));
    const subscribed = this.#patterns.get(pattern) ?? this.#begin(pattern);
    subscribed.listeners.add(listener);
    await abortable(subscribed.confirmed, over);
    stack.move();
    return listener;
  }

  #begin(pattern: string): Subscribed {
    const confirmed = this.#ask("subscribe", pattern);
    confirmed.catch(() => {});
    const subscribed = { listeners: new Set<Listener>(), confirmed };
    this.#patterns.set(pattern, subscribed);
    return subscribed;
  }

  /** Unsubscribes with the last listener. Never rejects. */
  async #release(pattern: string, listener: Listener): Promise<void> {
    const subscribed = this.#patterns.get(pattern);
    if (!subscribed?.listeners.delete(listener) || subscribed.listeners.size > 0) return;
    this.#patterns.delete(pattern);
    try {
      await this.#ask("unsubscribe", pattern);
    } catch {
      // Refused before, or gone with the session.
    }
  }

  /** Requests reach the broker in order, so the next one does not wait for the answer. */
  async #ask(what: "subscribe" | "unsubscribe", pattern: string): Promise<void> {
    const { session, ended } = this.#connection;
    const doing = what === "subscribe" ? `subscribe to ${pattern}` : `unsubscribe from ${pattern}`;
    const send = (key: string): void =>
      session[what](toTopic(pattern), true, key, requestTimeoutMs);
    await this.#connection.request(doing, send, ended);
  }

  #receive(message: solace.Message): void {
    const topic = topicOf(message);
    const payload = payloadOf(message);
    if (payload === undefined) return;
    const heard = { topic, payload, properties: propertiesOf(message) };
    for (const [pattern, { listeners }] of this.#patterns) {
      if (topicMatches(pattern, topic)) for (const listener of listeners) listener.offer(heard);
    }
  }
}
