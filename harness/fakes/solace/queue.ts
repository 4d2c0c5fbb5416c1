/**
 * A durable queue: messages in order, and the consumers who share them.
 */
import type { EventEmitter } from "node:events";
import type { SettledRange } from "./wire/assured-control.ts";
import type { ConsumerFlow } from "./consumer-flow.ts";
import type { Spooled } from "./consumer-flow.ts";
import type { Death, SmfBrokerEvents } from "./events.ts";
import { type Faults, refusals } from "./faults.ts";
import type { Message } from "./wire/message.ts";
import type { Response } from "./wire/params.ts";
import type { QueueProperties } from "./wire/queue-properties.ts";

/** Messages of one queue; the quota bounds their bytes. */
const maxMessagesPerQueue = 50_000;

/**
 * Consumers of one queue that are remembered after their connection was lost; of more, the oldest
 * go.
 */
export const maxLostFlows = 100;

/** What a queue needs of the broker that it is in. */
export interface QueueSurroundings {
  readonly events: EventEmitter<SmfBrokerEvents>;
  readonly faults: Faults;
  /** Epoch milliseconds. */
  now(): number;
  /** An id greater than all before, in any queue. */
  newMessageId(): number;
  /** Takes a message that nobody can be given. Returns whether it kept it. */
  bury(message: Message, from: Queue): boolean;
}

/** What can be seen of a queue. */
export interface QueueSummary {
  readonly name: string;
  readonly properties: QueueProperties;
  readonly subscriptions: readonly string[];
  /** Names of the clients that consume, once for each of their flows. */
  readonly consumers: readonly string[];
  /** Messages in the queue, those included that are handed out and not settled. */
  readonly depth: number;
  /** What these messages take. */
  readonly sizeBytes: number;
  readonly unsettled: number;
  /** How many messages were settled how, from the beginning. */
  readonly settlements: Readonly<Record<"accepted" | "failed" | "rejected", number>>;
}

/** One queue. Messages are in memory and outlive every connection. */
export class Queue {
  readonly name: string;
  readonly properties: QueueProperties;
  /** Topics whose messages it attracts. */
  readonly subscriptions = new Set<string>();
  readonly #around: QueueSurroundings;
  /** Messages that wait, by sequence. */
  readonly #ready: Spooled[] = [];
  /** Consumers, in the order of their turns. */
  #flows: ConsumerFlow[] = [];
  #lost: ConsumerFlow[] = [];
  #sequence = 0;
  #depth = 0;
  #sizeBytes = 0;
  readonly #settlements = { accepted: 0, failed: 0, rejected: 0 };

  constructor(name: string, properties: QueueProperties, around: QueueSurroundings) {
    this.name = name;
    this.properties = properties;
    this.#around = around;
  }

  describe(): QueueSummary {
    return {
      name: this.name,
      properties: this.properties,
      subscriptions: [...this.subscriptions],
      consumers: this.#flows.map(({ receiver }) => receiver.clientName),
      depth: this.#depth,
      sizeBytes: this.#sizeBytes,
      unsettled: this.#depth - this.#ready.length,
      settlements: { ...this.#settlements },
    };
  }

  /** Why the queue cannot take this message now; undefined when it can. */
  refusal({ sizeBytes }: Message): Response | undefined {
    if (sizeBytes > this.properties.maxMessageBytes) return refusals.maxMessageSize;
    const isFull =
      this.#depth >= maxMessagesPerQueue ||
      this.#sizeBytes + sizeBytes > this.properties.quotaMb * 1024 * 1024;
    return isFull ? refusals.spoolOverQuota : undefined;
  }

  /** Takes a message that it does not refuse. */
  spool(message: Message): void {
    const expires = this.properties.respectsTimeToLive && message.timeToLiveMs > 0;
    this.#depth++;
    this.#sizeBytes += message.sizeBytes;
    this.#ready.push({
      message,
      sequence: this.#sequence++,
      expiresAtMs: expires ? this.#around.now() + message.timeToLiveMs : undefined,
      deliveries: 0,
      sentAs: undefined,
    });
    this.handOut();
  }

  /** Whether another consumer is refused. */
  get isAtConsumerLimit(): boolean {
    return this.#flows.length >= this.properties.maxFlows;
  }

  /** Whether a new consumer would be given messages, or only stand by for an exclusive one. */
  get wouldBeActive(): boolean {
    return this.properties.accessType === "non-exclusive" || this.#flows.length === 0;
  }

  /**
   * Adds a consumer; it is handed nothing until it opens its window. A client that says what it
   * received last continues the flow that it lost.
   */
  bind(flow: ConsumerFlow, lastReceived: number): void {
    const { clientName } = flow.receiver;
    const former = this.#around.faults.forgetsConsumers
      ? undefined
      : this.#lost.find(
          (lost) => lost.receiver.clientName === clientName && lost.hasSent(lastReceived),
        );
    if (former) {
      flow.continue(former, lastReceived);
      this.#lost = this.#lost.filter((lost) => lost !== former);
    }
    this.#flows.push(flow);
    this.#around.events.emit("bound", { clientName, queue: this.name });
  }

  /** Removes a consumer; what it did not settle comes back. Idempotent. */
  unbind(flow: ConsumerFlow): void {
    if (!this.#flows.includes(flow)) return;
    this.#flows = this.#flows.filter((other) => other !== flow);
    this.#lost = [...this.#lost, flow].slice(-maxLostFlows);
    const returned = [...flow.unsettled.values()];
    flow.unsettled.clear();
    for (const spooled of returned) this.#requeue(spooled);
    const { clientName } = flow.receiver;
    this.#around.events.emit("unbound", { clientName, queue: this.name });
    this.handOut();
  }

  /** Ends every consumer's flow, and tells it why. */
  unbindAll(reason: Response): void {
    for (const flow of [...this.#flows]) {
      this.unbind(flow);
      flow.receiver.unbind(flow, reason);
    }
  }

  /** Begins anew with these messages: consumers are unbound, and what the queue has is dropped. */
  replay(messages: readonly Message[]): void {
    this.unbindAll(refusals.replayStarted);
    for (const spooled of this.#ready.splice(0)) this.#forget(spooled);
    for (const message of messages) this.spool(message);
  }

  /**
   * A consumer settles messages. It repeats what it said before: ids that it does not hold (any
   * more) are nothing new.
   */
  settle(flow: ConsumerFlow, ranges: readonly SettledRange[]): void {
    for (const { first, last, outcome } of ranges) {
      for (const id of [...flow.unsettled.keys()]) {
        if (id >= first && id <= last) this.#settleOne(flow, id, outcome);
      }
    }
    this.handOut();
  }

  /** Hands out what can be handed out now. */
  handOut(): void {
    for (;;) {
      const next = this.#ready[0];
      if (next === undefined) return;
      if (this.#isExpired(next)) {
        this.#ready.shift();
        this.#remove(next, "expired");
        continue;
      }
      const flow = this.#nextFlow();
      if (flow === undefined) return;
      this.#ready.shift();
      flow.handOut(next, () => this.#around.newMessageId());
      this.#around.events.emit("delivered", {
        clientName: flow.receiver.clientName,
        queue: this.name,
        topic: next.message.topic,
        deliveryCount: next.deliveries,
      });
    }
  }

  /** Removes messages whose time is over, wherever they wait. */
  expire(): void {
    const expired = this.#ready.filter((spooled) => this.#isExpired(spooled));
    for (const spooled of expired) {
      this.#ready.splice(this.#ready.indexOf(spooled), 1);
      this.#remove(spooled, "expired");
    }
  }

  /**
   * The consumer whose turn it is among those that can take a message; it goes to the end of the
   * line.
   */
  #nextFlow(): ConsumerFlow | undefined {
    const { accessType, maxUnsettledPerFlow } = this.properties;
    const candidates = accessType === "exclusive" ? this.#flows.slice(0, 1) : this.#flows;
    const chosen = candidates.find(
      (flow) => flow.isReady && flow.unsettled.size < maxUnsettledPerFlow,
    );
    if (chosen && candidates.length > 1) {
      this.#flows = [...this.#flows.filter((flow) => flow !== chosen), chosen];
    }
    return chosen;
  }

  #settleOne(flow: ConsumerFlow, id: number, outcome: SettledRange["outcome"]): void {
    const spooled = flow.unsettled.get(id);
    if (spooled === undefined) return;
    flow.unsettled.delete(id);
    const settled = outcome === "released" ? "failed" : outcome;
    this.#settlements[settled]++;
    this.#around.events.emit("settled", {
      clientName: flow.receiver.clientName,
      queue: this.name,
      topic: spooled.message.topic,
      outcome: settled,
    });
    if (settled === "accepted") this.#forget(spooled);
    else if (settled === "rejected") this.#remove(spooled, "rejected");
    else this.#requeue(spooled);
  }

  /** Puts a message back into its place, unless it was handed out often enough. */
  #requeue(spooled: Spooled): void {
    const { maxRedeliveries } = this.properties;
    if (maxRedeliveries > 0 && spooled.deliveries > maxRedeliveries) {
      this.#remove(spooled, "max-redeliveries");
      return;
    }
    const at = this.#ready.findIndex(({ sequence }) => sequence > spooled.sequence);
    this.#ready.splice(at === -1 ? this.#ready.length : at, 0, spooled);
  }

  #isExpired({ expiresAtMs }: Spooled): boolean {
    return expiresAtMs !== undefined && expiresAtMs <= this.#around.now();
  }

  #remove(spooled: Spooled, reason: Death): void {
    this.#forget(spooled);
    const { message } = spooled;
    const isKept = this.#around.bury(message, this);
    this.#around.events.emit("dead", {
      queue: this.name,
      topic: message.topic,
      reason,
      isKept,
    });
  }

  #forget({ message }: Spooled): void {
    this.#depth--;
    this.#sizeBytes -= message.sizeBytes;
  }
}
