/**
 * Takes calls from queues: what came waits here until it is pulled, and each is settled on the flow that it came through.
 */
import type solace from "solclientjs";
import type { Clock } from "../../support/clock.ts";
import type { Delivery } from "../broker.ts";
import type { BrokerLog } from "../log.ts";
import type { SolaceConnection } from "./connection.ts";
import type { Flow } from "./flow.ts";
import { deliveryCountOf, payloadOf, propertiesOf, topicOf } from "./messages.ts";
import type { Queues } from "./queues.ts";
import { Source } from "./source.ts";

/** How much to take, and from where. */
export interface IntakeOptions {
  /** Deliveries that are received and not settled, at most. The library has one more of each flow in hand. */
  readonly maxUnsettled: number;
  /** How often a queue hands a message out that has no limit of its own, as far as the worker is concerned. */
  readonly maxDeliveries: number;
  readonly log: BrokerLog;
  readonly clock?: Clock;
}

/** A message that was received. */
interface Received {
  readonly source: Source;
  readonly flow: Flow;
  readonly message: solace.Message;
  readonly payload: Uint8Array;
}

/** The receiving half of a session. Lives as long as its connection. */
export class Intake {
  readonly deliveries: AsyncIterable<Delivery>;
  readonly #connection: SolaceConnection;
  readonly #queues: Queues;
  readonly #options: IntakeOptions;
  /** By queue. Those that were left stay, to be taken up again. */
  readonly #sources = new Map<string, Source>();
  /** Flows that take messages while there is room. The one that has had the last message stands last. */
  readonly #open = new Set<Flow>();
  /** Queues of which has been told that they do not count deliveries. */
  readonly #uncounted = new Set<string>();
  /** Received and not handed out yet. */
  #waiting: Received[] = [];
  /** Received and not settled. */
  #held = 0;
  #isCompleting = false;
  #isComplete = false;
  /** Resolves when there may be something to hand out, or nothing more to come. */
  #changed = Promise.withResolvers<void>();

  constructor(connection: SolaceConnection, queues: Queues, options: IntakeOptions) {
    this.#connection = connection;
    this.#queues = queues;
    this.#options = options;
    this.deliveries = { [Symbol.asyncIterator]: () => this.#deliver() };
    connection.ended.addEventListener("abort", () => this.#notify(), { once: true });
  }

  /** Whether calls are wanted, and can come from no queue. */
  get isWithoutQueue(): boolean {
    const wanted = [...this.#sources.values()].filter(({ isWanted }) => isWanted);
    return wanted.length > 0 && !wanted.some(({ isBound }) => isBound);
  }

  /** What the calls of a tool come from, if they are to come. */
  sourceOf(toolName: string): Source | undefined {
    return this.#sources.get(this.#queues.queueOf(toolName));
  }

  /**
   * Takes the calls of a tool, unless no more are to be taken at all. Idempotent. Throws BrokerError, or the signal's reason
   * when it aborts.
   */
  async serve(toolName: string, signal: AbortSignal): Promise<void> {
    if (this.#isCompleting) return;
    const source = this.sourceOf(toolName) ?? this.#add(this.#queues.queueOf(toolName));
    await source.serve(toolName, signal);
  }

  /** Takes no more from the queue of a tool; what came from it is handed out. Idempotent. Never rejects. */
  async cancel(toolName: string): Promise<void> {
    await this.sourceOf(toolName)?.leave();
  }

  /** Takes no more from any queue; `deliveries` ends after what came. Never rejects. */
  async complete(): Promise<void> {
    this.#isCompleting = true;
    await Promise.all(Array.from(this.#sources.values(), (source) => source.leave()));
    this.#isComplete = true;
    this.#notify();
  }

  /** Lets all queues go and ends `deliveries`; the broker takes back what is not settled. Never rejects. */
  async close(): Promise<void> {
    this.#isCompleting = true;
    this.#isComplete = true;
    this.#waiting = [];
    this.#notify();
    await Promise.all(Array.from(this.#sources.values(), (source) => source.close()));
  }

  #add(queue: string): Source {
    const source: Source = new Source(queue, {
      ...this.#options,
      connection: this.#connection,
      queues: this.#queues,
      listener: {
        onMessage: (flow, message) => this.#received(source, flow, message),
        onBound: (flow) => {
          this.#open.add(flow);
          this.#regulate();
        },
        onGone: (flow, isLost) => {
          this.#open.delete(flow);
          if (isLost) this.#giveUp(flow);
        },
      },
    });
    this.#sources.set(queue, source);
    return source;
  }

  #received(source: Source, flow: Flow, message: solace.Message): void {
    const payload = payloadOf(message);
    if (payload === undefined) {
      this.#options.log.warn(
        { queue: flow.queue, topic: topicOf(message) },
        "message rejected that is neither binary nor text",
      );
      flow.settle(message, "rejected");
      void source.tidy(flow);
      return;
    }
    this.#held++;
    if (this.#open.delete(flow)) this.#open.add(flow);
    this.#regulate();
    void source.extend();
    // A session that closes gives it back.
    if (!this.#isComplete) this.#waiting.push({ source, flow, message, payload });
    this.#notify();
  }

  /** Opens the flows while there is room, one after the other, and stops them all when there is none. */
  #regulate(): void {
    for (const flow of [...this.#open]) flow.setOpen(this.#hasRoom);
  }

  get #hasRoom(): boolean {
    return this.#held < this.#options.maxUnsettled;
  }

  /** What came through a flow that was lost comes again: not handed out, it is nobody's here. */
  #giveUp(flow: Flow): void {
    const kept = this.#waiting.filter((received) => received.flow !== flow);
    this.#held -= this.#waiting.length - kept.length;
    this.#waiting = kept;
    this.#regulate();
  }

  async *#deliver(): AsyncGenerator<Delivery, void> {
    // What was received when the connection ended is not ours any more.
    while (!this.#connection.ended.aborted) {
      const received = this.#waiting.shift();
      if (received !== undefined) yield this.#handOut(received);
      else if (this.#isComplete) return;
      else await this.#changed.promise;
    }
  }

  #handOut({ source, flow, message, payload }: Received): Delivery {
    let isSettled = false;
    return {
      topic: topicOf(message),
      payload,
      redelivered: message.isRedelivered(),
      deliveryCount: this.#deliveryCountOf(message, flow),
      maxDeliveries: flow.maxDeliveries ?? this.#options.maxDeliveries,
      properties: propertiesOf(message),
      settle: async (outcome) => {
        if (isSettled) return;
        isSettled = true;
        flow.settle(message, outcome);
        this.#held--;
        this.#regulate();
        await source.tidy(flow);
      },
    };
  }

  #deliveryCountOf(message: solace.Message, { queue }: Flow): number {
    const count = deliveryCountOf(message);
    if (count !== undefined) return count;
    if (!this.#uncounted.has(queue)) {
      this.#uncounted.add(queue);
      this.#options.log.warn(
        { queue },
        "queue does not tell how often it has delivered a call, so none is POISONED; have its deliveryCountEnabled set",
      );
    }
    return message.isRedelivered() ? 2 : 1;
  }

  #notify(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }
}
