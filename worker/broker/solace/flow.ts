/**
 * The way of messages from one queue to this worker: a consumer of the library.
 */
import solace from "solclientjs";
import { abortable } from "../../support/timeout.ts";
import { BrokerError, type Settlement } from "../broker.ts";
import type { SolaceConnection } from "./connection.ts";
import { requestFailure } from "./failures.ts";
import {
  type QueueFacts,
  bindTimeoutMs,
  closeTimeoutMs,
  consumerProperties,
  outcomes,
  queueFacts,
} from "./library/flow-properties.ts";
import { correlationKeyOf, toTopic } from "./library/library.ts";
import { requestTimeoutMs } from "./login.ts";
import { SettledRanges, manyRanges, mostRanges } from "./library/settled-ranges.ts";

/**
 * Unsettled messages of one flow at most. Half of `mostRanges`: each that is settled before its
 * neighbours makes a range.
 */
const maxUnsettled = 30;

const events = solace.MessageConsumerEventName;

export interface FlowOptions {
  readonly queue: string;
  readonly onMessage: (flow: Flow, message: solace.Message) => void;
}

/** A bound flow. Its owner closes it before the connection, unless the broker ends it. */
export class Flow {
  readonly queue: string;
  /** Fulfils with the cause when the broker ends the flow, not when its owner does. */
  readonly lost: Promise<BrokerError>;
  readonly #connection: SolaceConnection;
  readonly #consumer: solace.MessageConsumer;
  readonly #unsettled = new Map<solace.Message, number>();
  readonly #settled = new SettledRanges();
  readonly #bound = Promise.withResolvers<void>();
  readonly #lost = Promise.withResolvers<BrokerError>();
  readonly #down = Promise.withResolvers<void>();
  #lastNumber = 0;
  #isOpen = false;
  #facts: QueueFacts | undefined;
  /** Aborts when the owner closes the flow or the broker ends it. */
  readonly #closing = new AbortController();

  private constructor(connection: SolaceConnection, { queue, onMessage }: FlowOptions) {
    this.queue = queue;
    this.lost = this.#lost.promise;
    this.#connection = connection;
    this.#consumer = connection.session.createMessageConsumer(consumerProperties(queue));
    const consumer = this.#consumer;
    const lose = (error: unknown): void => this.#lose(error);
    consumer.on(events.UP, () => this.#start());
    consumer.on(events.CONNECT_FAILED_ERROR, (error) => this.#bound.reject(error));
    consumer.on(events.MESSAGE, (message) => {
      // The broker takes back what comes while the flow is closed.
      if (this.isClosing) return;
      this.#unsettled.set(message, ++this.#lastNumber);
      onMessage(this, message);
    });
    consumer.on(events.DOWN, () => this.#down.resolve());
    consumer.on(events.DOWN_ERROR, lose);
    consumer.on(events.RECONNECTING, lose);
    consumer.on(events.GM_DISABLED, () => lose(new Error("guaranteed messaging is disabled")));
    const { answers } = connection;
    consumer.on(events.SUBSCRIPTION_OK, (event) => answers.succeed(correlationKeyOf(event)));
    consumer.on(events.SUBSCRIPTION_ERROR, (event) => answers.fail(correlationKeyOf(event), event));
    // Of the library's general kind: one of these listeners threw.
    (consumer as NodeJS.EventEmitter).on("error", lose);
  }

  /** Binds to a queue; the flow is stopped at first. */
  static async open(
    connection: SolaceConnection,
    options: FlowOptions,
    signal: AbortSignal,
  ): Promise<Flow> {
    connection.ended.throwIfAborted();
    const doing = `bind to the queue ${options.queue}`;
    const flow = create(() => new Flow(connection, options), doing);
    try {
      await connection.answered(flow.#connect(), doing, signal, bindTimeoutMs);
      return flow;
    } catch (error) {
      void flow.#abandon();
      throw error;
    }
  }

  get facts(): QueueFacts {
    if (this.#facts === undefined) throw new Error("the flow is not bound");
    return this.#facts;
  }

  /** Whether its owner closed it, or the broker ended it. */
  get isClosing(): boolean {
    return this.#closing.signal.aborted;
  }

  get unsettled(): number {
    return this.#unsettled.size;
  }

  /** Whether it can take another message; settlements may change that. */
  get canTake(): boolean {
    return this.unsettled < maxUnsettled && this.#settled.count + this.unsettled < mostRanges;
  }

  /** Whether another flow should take its place, as nothing is lost with it. */
  get isSpent(): boolean {
    return this.unsettled === 0 && this.#settled.count >= manyRanges;
  }

  /** Idempotent, as `unsubscribe` is. */
  async subscribe(topic: string, signal: AbortSignal): Promise<void> {
    const doing = `take ${topic} into the queue ${this.queue}`;
    await this.#change("addSubscription", topic, doing, signal);
  }

  async unsubscribe(topic: string, signal: AbortSignal): Promise<void> {
    const doing = `take ${topic} from the queue ${this.queue}`;
    await this.#change("removeSubscription", topic, doing, signal);
  }

  /** Delivers messages if it can, or stops. Starts synchronously with what the library holds. */
  setOpen(isOpen: boolean): void {
    const wasOpen = this.#isOpen;
    this.#isOpen = isOpen && this.canTake;
    if (this.#isOpen === wasOpen) return;
    this.#whileUp(() => {
      if (wasOpen) this.#consumer.stop();
      else this.#consumer.start();
    });
  }

  /** Does nothing when the flow is closed: the broker redelivers the message. */
  settle(message: solace.Message, outcome: Settlement): void {
    const number = this.#unsettled.get(message);
    if (number === undefined) return;
    this.#unsettled.delete(message);
    this.#settled.add(number, outcome);
    this.#whileUp(() => message.settle(outcomes[outcome]));
  }

  /** Unbinds after the last settlement; the broker redelivers the rest. Idempotent. */
  async close(): Promise<void> {
    if (this.isClosing || this.#connection.ended.aborted) return;
    this.#closing.abort(new BrokerError("The flow was closed", { transient: true }));
    await this.#connection.beforeClose(this.#disconnect());
  }

  /** Never rejects. */
  async #disconnect(): Promise<void> {
    try {
      this.#consumer.disconnect();
      await abortable(this.#down.promise, AbortSignal.timeout(closeTimeoutMs));
    } catch {
      // The broker ended the flow, or the session.
    }
    this.#dispose();
  }

  /** Ends with the flow: the library then answers no more. */
  async #change(
    change: "addSubscription" | "removeSubscription",
    topic: string,
    doing: string,
    signal: AbortSignal,
  ): Promise<void> {
    const send = (key: string): void =>
      this.#consumer[change](toTopic(topic), key, requestTimeoutMs);
    const over = AbortSignal.any([signal, this.#closing.signal]);
    await this.#connection.request(doing, send, over);
  }

  async #connect(): Promise<void> {
    this.#consumer.connect();
    await this.#bound.promise;
  }

  /** Closes the flow after a late answer to its bind. Never rejects. */
  async #abandon(): Promise<void> {
    try {
      await abortable(this.#bound.promise, this.#connection.ended);
    } catch {
      return this.#dispose();
    }
    await this.close();
  }

  #start(): void {
    // The owner opens it when there are permits.
    this.#consumer.stop();
    this.#facts = queueFacts(this.#consumer);
    this.#bound.resolve();
  }

  #whileUp(act: () => void): void {
    if (this.isClosing || this.#connection.ended.aborted) return;
    try {
      act();
    } catch (error) {
      this.#lose(error);
    }
  }

  #lose(cause: unknown): void {
    if (this.isClosing) return;
    const failure = requestFailure(cause, `keep the flow from the queue ${this.queue}`);
    this.#dispose(failure);
    this.#bound.reject(cause);
    this.#lost.resolve(failure);
  }

  #dispose(reason?: BrokerError): void {
    this.#closing.abort(reason);
    this.#consumer.dispose();
  }
}

function create<T>(make: () => T, doing: string): T {
  try {
    return make();
  } catch (error) {
    throw requestFailure(error, doing);
  }
}
