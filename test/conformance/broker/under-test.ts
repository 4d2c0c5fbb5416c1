/**
 * What the suite for brokers needs of a broker: write `create` and `capabilities` for one's own.
 */
import type {
  Broker,
  BrokerSession,
  BrokerSubscription,
  Delivery,
  HeardMessage as Message,
} from "../../../worker/broker/broker.ts";
import { invokeTopic } from "../../../worker/protocol/topics.ts";

/** A message that the other side heard; `payload` is its JSON text. */
export interface HeardMessage {
  readonly topic: string;
  readonly payload: string;
  readonly properties: Readonly<Record<string, unknown>>;
}

/** The agents' side of the broker. */
export interface Peer {
  /** Publishes a message; when it resolves the broker has it. */
  publish(
    topic: string,
    payload: string,
    properties?: Readonly<Record<string, string | number>>,
  ): Promise<void>;
  /** Subscribes; the returned function waits for the next message. */
  listen(pattern: string): Promise<() => Promise<HeardMessage>>;
}

/** A broker that runs, for one test: nothing of it is shared with another test. */
export interface BrokerUnderTest extends AsyncDisposable {
  readonly broker: Broker;
  readonly namespace: string;
  readonly peer: Peer;
  /** The adapter of other workers. Called only where `hasGroups`. */
  brokerOf?(options: GroupOptions): Broker;
  /**
   * Breaks every connection of the worker, that a session or another end may learn of later; the
   * peer's stay.
   */
  cutConnections(): void | Promise<void>;
}

/** Group and queues of a worker; those of `broker` unless given. */
export interface GroupOptions {
  readonly group?: string;
  /** Unsettled deliveries of each queue at most. */
  readonly queues?: Readonly<Record<string, number>>;
  readonly queueOf?: (toolName: string) => string;
}

/** What a test wants of the broker that it runs against. */
export interface BrokerTestOptions {
  /**
   * Deliveries that the broker hands to one session and that are not settled yet, at most. Asked
   * for only where `limitsUnsettled`. Default: 32 or more, since tests hold some without settling
   * them.
   */
  readonly maxUnsettled?: number;
  /**
   * How often a message is handed out, at most. Asked for only where `limitsDeliveries`. Default: 8
   * or more, or no limit.
   */
  readonly maxDeliveries?: number;
}

/** Starts a broker, or makes a place of its own on one that runs. */
export type CreateBroker = (options?: BrokerTestOptions) => Promise<BrokerUnderTest>;

/** In what brokers may differ. What one cannot do is reported as skipped. */
export interface BrokerCapabilities {
  /**
   * Sessions share the calls of a group in a queue, whoever serves which tool; otherwise each gets
   * a copy.
   */
  readonly shares: boolean;
  /** Workers may be of several groups, which have several queues. */
  readonly hasGroups?: boolean;
  /** Calls of a tool that was served wait while no session is there. */
  readonly durable: boolean;
  /** A call that was not settled, or settled `failed`, comes again. */
  readonly redelivers: boolean;
  /** `deliveryCount` is exact; otherwise it is 2 for every delivery but the first. */
  readonly countsDeliveries: boolean;
  /** A message is handed out `BrokerTestOptions.maxDeliveries` times at most. */
  readonly limitsDeliveries: boolean;
  /**
   * A session holds `BrokerTestOptions.maxUnsettled` unsettled deliveries at most; others get the
   * rest.
   */
  readonly limitsUnsettled: boolean;
  /** `publish` tells when nobody is there to get a message. */
  readonly tellsUnroutable: boolean;
  /** A session outlives the loss of its connection. */
  readonly reconnects: boolean;
}

/** What each part of the suite is given. */
export interface Suite {
  /** Name of the broker, for reports. */
  readonly name: string;
  readonly create: CreateBroker;
  readonly capabilities: BrokerCapabilities;
}

/** A signal that never aborts. */
export const never = new AbortController().signal;

/** Pulls deliveries one by one; fails when the session ends instead. */
export function pull(session: BrokerSession): { next(): Promise<Delivery> } {
  const iterator = session.deliveries[Symbol.asyncIterator]();
  return {
    async next() {
      const result = await iterator.next();
      if (result.done) throw new Error("the session ended");
      return result.value;
    },
  };
}

/** Pulls messages one by one; fails when the subscription ends instead. */
export function hear(subscription: BrokerSubscription): { next(): Promise<Message> } {
  const iterator = subscription[Symbol.asyncIterator]();
  return {
    async next() {
      const result = await iterator.next();
      if (result.done) throw new Error("the subscription ended");
      return result.value;
    },
  };
}

/** The JSON text of a message. */
export function textOf(message: Pick<Message, "payload">): string {
  return Buffer.from(message.payload).toString();
}

/** JSON texts "0", "1", … as many as `count`. */
export function numbers(count: number): readonly string[] {
  return Array.from({ length: count }, (_, n) => `${n}`);
}

/**
 * The JSON texts of everything that a session hands out until its deliveries end; accepts it all.
 */
export async function restOf(session: BrokerSession): Promise<readonly string[]> {
  const texts: string[] = [];
  for await (const delivery of session.deliveries) {
    texts.push(textOf(delivery));
    await delivery.settle("accepted");
  }
  return texts;
}

/** A worker without a tool: accepts whatever its session is handed, at once. */
export class Acceptor {
  /** JSON texts in the order in which they came. */
  readonly texts: string[] = [];
  readonly #session: BrokerSession;
  readonly #done: Promise<void>;

  constructor(session: BrokerSession) {
    this.#session = session;
    this.#done = this.#accept();
  }

  /** Pauses the session; resolves when it has handed out everything that it had. */
  async finish(): Promise<void> {
    await this.#session.pause();
    await this.#done;
  }

  async #accept(): Promise<void> {
    for await (const delivery of this.#session.deliveries) {
      this.texts.push(textOf(delivery));
      await delivery.settle("accepted");
    }
  }
}

/** Publishes the calls of a tool one after the other. */
export async function publishCalls(
  under: BrokerUnderTest,
  toolName: string,
  payloads: readonly string[],
): Promise<void> {
  const topic = invokeTopic(under.namespace, toolName);
  for (const payload of payloads) await under.peer.publish(topic, payload);
}

/** A topic of the namespace that is no tool's. */
export function topicIn(under: BrokerUnderTest, levels: string): string {
  return `${under.namespace.replace(/\/$/, "")}/${levels}`;
}

/** Sockets that keep this process alive. */
export function heldResources(): readonly string[] {
  return process.getActiveResourcesInfo().filter((name) => name.startsWith("TCP"));
}
