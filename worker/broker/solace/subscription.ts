/**
 * What a session hears beside its queues: direct subscriptions of the session, shared among those
 * who listen.
 */
import type solace from "solclientjs";
import { topicMatches } from "../../protocol/topics.ts";
import { abortable } from "../../support/within.ts";
import { BrokerError, type BrokerSubscription, type HeardMessage } from "../broker.ts";
import { SubscriptionBuffer } from "../subscription-buffer.ts";
import type { SolaceConnection } from "./connection.ts";
import { requestTimeoutMs } from "./login.ts";
import { toTopic } from "./library.ts";
import { payloadOf, propertiesOf, topicOf } from "./messages.ts";

/** A pattern that the broker knows, and who listens to it. */
interface Subscribed {
  readonly listeners: Set<SolaceSubscription>;
  /** Rejects with what the broker refused it for. */
  readonly confirmed: Promise<void>;
}

/**
 * Everybody who listens in one session. The broker sends a message once, however many patterns of
 * it match.
 */
export class Audience {
  readonly #connection: SolaceConnection;
  readonly #patterns = new Map<string, Subscribed>();

  constructor(connection: SolaceConnection) {
    this.#connection = connection;
    connection.onMessage((message) => this.#heard(message));
  }

  /** Subscribes. Throws BrokerError, for patterns that are none too; leaves nothing behind then. */
  async join(pattern: string, signal: AbortSignal): Promise<SolaceSubscription> {
    signal.throwIfAborted();
    const { ended } = this.#connection;
    ended.throwIfAborted();
    checkPattern(pattern);
    await using stack = new AsyncDisposableStack();
    const listener = stack.use(new SolaceSubscription(ended, (self) => this.#leave(pattern, self)));
    const subscribed = this.#patterns.get(pattern) ?? this.#subscribe(pattern);
    subscribed.listeners.add(listener);
    await abortable(subscribed.confirmed, AbortSignal.any([signal, ended]));
    stack.move();
    return listener;
  }

  #subscribe(pattern: string): Subscribed {
    const confirmed = this.#ask("subscribe", pattern);
    confirmed.catch(() => {});
    const subscribed = { listeners: new Set<SolaceSubscription>(), confirmed };
    this.#patterns.set(pattern, subscribed);
    return subscribed;
  }

  /** The last to go takes the subscription along. Never rejects. */
  async #leave(pattern: string, listener: SolaceSubscription): Promise<void> {
    const subscribed = this.#patterns.get(pattern);
    if (!subscribed?.listeners.delete(listener) || subscribed.listeners.size > 0) return;
    this.#patterns.delete(pattern);
    try {
      await this.#ask("unsubscribe", pattern);
    } catch {
      // Refused before, or gone with the session.
    }
  }

  /**
   * Requests reach the broker in the order in which they are made, so one may follow before another
   * is answered.
   */
  async #ask(what: "subscribe" | "unsubscribe", pattern: string): Promise<void> {
    const { session, ended } = this.#connection;
    const doing = what === "subscribe" ? `subscribe to ${pattern}` : `unsubscribe from ${pattern}`;
    await this.#connection.request(
      doing,
      (key) => session[what](toTopic(pattern), true, key, requestTimeoutMs),
      ended,
    );
  }

  #heard(message: solace.Message): void {
    const topic = topicOf(message);
    const payload = payloadOf(message);
    if (payload === undefined) return;
    const heard = { topic, payload, properties: propertiesOf(message) };
    for (const [pattern, { listeners }] of this.#patterns) {
      if (topicMatches(pattern, topic)) for (const listener of listeners) listener.offer(heard);
    }
  }
}

/** One listener: keeps what was heard until it is pulled. */
export class SolaceSubscription implements BrokerSubscription {
  readonly #sessionEnded: AbortSignal;
  readonly #leave: (self: SolaceSubscription) => Promise<void>;
  readonly #heard = new SubscriptionBuffer<HeardMessage>();
  #isDisposed = false;

  /** `leave` is called once, when it is disposed of. */
  constructor(sessionEnded: AbortSignal, leave: (self: SolaceSubscription) => Promise<void>) {
    this.#sessionEnded = sessionEnded;
    this.#leave = leave;
    sessionEnded.addEventListener("abort", this.#end, { once: true });
  }

  get dropped(): number {
    return this.#heard.dropped;
  }

  /** Takes a message that is for it. */
  offer(message: HeardMessage): void {
    this.#heard.offer(message);
  }

  [Symbol.asyncIterator](): AsyncIterator<HeardMessage> {
    return this.#heard[Symbol.asyncIterator]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isDisposed) return;
    this.#isDisposed = true;
    this.#heard[Symbol.dispose]();
    this.#sessionEnded.removeEventListener("abort", this.#end);
    await this.#leave(this);
  }

  readonly #end = (): void => this.#heard.end();
}

/**
 * Solace would take `ab*` for a prefix and `>` in the middle for itself; no other broker does, and
 * no caller should.
 */
function checkPattern(pattern: string): void {
  const levels = pattern.split("/");
  const odd = levels.find(
    (level, index) =>
      (level.includes("*") && level !== "*") || (level === ">" && index < levels.length - 1),
  );
  if (odd === undefined) return;
  throw new BrokerError(
    `Cannot subscribe to ${pattern}: "${odd}" must be a whole level "*", or ">" at the end`,
    { transient: false },
  );
}
