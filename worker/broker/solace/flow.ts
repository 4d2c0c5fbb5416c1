/**
 * The way of messages from one queue to this worker.
 */
import solace from "solclientjs";
import { abortable } from "../abortable.ts";
import { BrokerError, type Settlement } from "../broker.ts";
import type { SolaceConnection } from "./connection.ts";
import { requestTimeoutMs } from "./library-session.ts";
import { correlationKeyOf, subcodeOf, textOf, toTopic } from "./library.ts";

/**
 * Messages that the library takes from the broker before it hands them on: its least. It takes as many while it is
 * stopped too, so a worker that is busy keeps this one from others, unless the queue has a limit of its own.
 */
const windowMessages = 1;

/**
 * Messages settled otherwise than as accepted after which a flow is to be renewed as soon as none of its messages is held, and
 * after which it has to go whatever is. The library keeps each of them for as long as its consumer lives, tells all with every
 * settlement, and ends the process when they take more than 64 ranges of numbers, which some 30 do.
 */
const refusals = { many: 20, most: 28 } as const;

/** Milliseconds for the broker to answer a bind. */
const bindTimeoutMs = 10_000;

/** Milliseconds after which the broker hears of settlements, the library's least. */
const settlementDelayMs = 20;

/** Milliseconds for the broker to let a flow go. */
const closeTimeoutMs = 5_000;

const { ErrorSubcode, MessageConsumerEventName: events } = solace;

const outcomes: Readonly<Record<Settlement, solace.MessageOutcome>> = {
  accepted: solace.MessageOutcome.ACCEPTED,
  failed: solace.MessageOutcome.FAILED,
  rejected: solace.MessageOutcome.REJECTED,
};

/** Which queue, and who gets its messages. */
export interface FlowOptions {
  readonly queue: string;
  readonly onMessage: (flow: Flow, message: solace.Message) => void;
}

/** A flow that is bound. Its owner closes it, before the connection; a flow that the broker ends ends the session. */
export class Flow {
  readonly queue: string;
  /** Messages that were received and are not settled; its owner counts them. */
  held = 0;
  #refusals = 0;
  readonly #connection: SolaceConnection;
  readonly #consumer: solace.MessageConsumer;
  readonly #down = Promise.withResolvers<void>();
  #isClosing = false;

  private constructor(connection: SolaceConnection, { queue, onMessage }: FlowOptions) {
    this.queue = queue;
    this.#connection = connection;
    this.#consumer = connection.session.createMessageConsumer(consumerProperties(queue));
    const consumer = this.#consumer;
    consumer.on(events.MESSAGE, (message) => onMessage(this, message));
    consumer.on(events.DOWN, () => this.#down.resolve());
    consumer.on(events.DOWN_ERROR, (error) => this.#lose(error));
    consumer.on(events.RECONNECTING, (error) => this.#lose(error));
    consumer.on(events.GM_DISABLED, () =>
      this.#lose(new Error("guaranteed messaging is disabled")),
    );
    const { answers } = connection;
    consumer.on(events.SUBSCRIPTION_OK, (event) => answers.succeed(correlationKeyOf(event)));
    consumer.on(events.SUBSCRIPTION_ERROR, (event) => answers.fail(correlationKeyOf(event), event));
    // Of the library's general kind: one of these listeners threw.
    (consumer as NodeJS.EventEmitter).on("error", (error: unknown) => this.#lose(error));
  }

  /** Binds to a queue that is there; the flow is stopped at first. Throws BrokerError, or the signal's reason when it aborts. */
  static async open(
    connection: SolaceConnection,
    options: FlowOptions,
    signal: AbortSignal,
  ): Promise<Flow> {
    connection.ended.throwIfAborted();
    const flow = new Flow(connection, options);
    try {
      await connection.answered(flow.#bound(), `bind to the queue ${options.queue}`, signal);
      return flow;
    } catch (error) {
      flow.#dispose();
      throw error;
    }
  }

  /** Whether the broker hands all messages to one consumer as long as it is there. */
  get isExclusive(): boolean {
    // Its types take this for a property of the class.
    const { accessType } = this.#consumer as unknown as { accessType: solace.QueueAccessType };
    return accessType === solace.QueueAccessType.EXCLUSIVE;
  }

  /** How often the queue hands a message out; undefined where it does so without end or does not tell. */
  get maxDeliveries(): number | undefined {
    const redeliveries = this.#consumer.getProperties().queueProperties?.maxMessageRedelivery ?? 0;
    return redeliveries === 0 ? undefined : redeliveries + 1;
  }

  /** Has messages of a topic come into the queue. Idempotent. Throws BrokerError. */
  async attract(topic: string, signal: AbortSignal): Promise<void> {
    await this.#connection.request(
      `take ${topic} into the queue ${this.queue}`,
      (key) => this.#consumer.addSubscription(toTopic(topic), key, requestTimeoutMs),
      signal,
    );
  }

  /** Has messages of a topic come into the queue no more; what is there stays. Throws BrokerError. */
  async repel(topic: string, signal: AbortSignal): Promise<void> {
    await this.#connection.request(
      `take ${topic} from the queue ${this.queue}`,
      (key) => this.#consumer.removeSubscription(toTopic(topic), key, requestTimeoutMs),
      signal,
    );
  }

  /** Hands messages on, or stops to. */
  setOpen(isOpen: boolean): void {
    this.#whileUp(() => {
      if (isOpen) this.#consumer.start();
      else this.#consumer.stop();
    });
  }

  /** Whether another flow should take its place. */
  get isSpent(): boolean {
    return this.#refusals >= refusals.many;
  }

  /** Whether nothing more may be settled through it. */
  get isExhausted(): boolean {
    return this.#refusals >= refusals.most;
  }

  /** Nothing when the flow is gone: the broker has the message again. */
  settle(message: solace.Message, outcome: Settlement): void {
    if (outcome !== "accepted") this.#refusals++;
    this.#whileUp(() => message.settle(outcomes[outcome]));
  }

  /** Lets the queue go: what was settled is told to the broker before, and it takes the rest back. Idempotent. */
  async close(): Promise<void> {
    if (this.#isClosing || this.#connection.ended.aborted) return;
    this.#isClosing = true;
    try {
      this.#consumer.disconnect();
      const { ended } = this.#connection;
      const patience = AbortSignal.any([ended, AbortSignal.timeout(closeTimeoutMs)]);
      await abortable(this.#down.promise, patience);
    } catch {
      // The broker has ended the flow itself, or the session.
    }
    this.#dispose();
  }

  async #bound(): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#consumer.on(events.UP, () => {
      // The owner opens it when there is room.
      this.#consumer.stop();
      resolve();
    });
    this.#consumer.on(events.CONNECT_FAILED_ERROR, reject);
    this.#consumer.connect();
    await promise;
  }

  #whileUp(act: () => void): void {
    if (this.#isClosing || this.#connection.ended.aborted) return;
    try {
      act();
    } catch {
      // Down already, of which we are about to be told.
    }
  }

  #lose(cause: unknown): void {
    if (this.#isClosing) return;
    const message = `The broker ended the flow from the queue ${this.queue}: ${textOf(cause)}`;
    this.#connection.lose(new BrokerError(message, { cause, transient: true }));
  }

  #dispose(): void {
    this.#isClosing = true;
    this.#consumer.dispose();
  }
}

/** Whether a queue could not be bound to because there is none of its name. */
export function isUnknownQueue(error: unknown): boolean {
  return error instanceof BrokerError && subcodeOf(error.cause) === ErrorSubcode.UNKNOWN_QUEUE_NAME;
}

/** Whether the user may not do what was asked for. */
export function isNotPermitted(error: unknown): boolean {
  return (
    error instanceof BrokerError && subcodeOf(error.cause) === ErrorSubcode.PERMISSION_NOT_ALLOWED
  );
}

function consumerProperties(queue: string): solace.MessageConsumerProperties {
  return Object.assign(new solace.MessageConsumerProperties(), {
    queueDescriptor: queueDescriptor(queue),
    acknowledgeMode: solace.MessageConsumerAcknowledgeMode.CLIENT,
    requiredSettlementOutcomes: [outcomes.failed, outcomes.rejected],
    windowSize: windowMessages,
    transportAcknowledgeTimeoutInMsecs: settlementDelayMs,
    connectAttempts: 1,
    connectTimeoutInMsecs: bindTimeoutMs,
    // A flow that is down ends the session, and `reconnecting` opens another.
    reconnectAttempts: 0,
  } satisfies Partial<solace.MessageConsumerProperties>);
}

/** A durable queue by its name. */
export function queueDescriptor(name: string): solace.QueueDescriptor {
  return new solace.QueueDescriptor({ name, type: solace.QueueType.QUEUE, durable: true });
}
