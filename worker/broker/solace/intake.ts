/**
 * Takes calls from queues: what came waits here until it is pulled, and each is settled on the flow that it came through.
 */
import type solace from "solclientjs";
import { BrokerError, type Delivery } from "../broker.ts";
import type { BrokerLog } from "../log.ts";
import type { SolaceConnection } from "./connection.ts";
import type { Flow, FlowOptions } from "./flow.ts";
import { deliveryCountOf, payloadOf, propertiesOf, topicOf } from "./messages.ts";

/** How much to take. */
export interface IntakeOptions {
  /** Deliveries that are received and not settled, at most. The library has one more of each queue in hand. */
  readonly maxUnsettled: number;
  readonly log: BrokerLog;
}

function exhausted({ queue }: Flow): BrokerError {
  const message = `Too many calls of the queue ${queue} were given back or rejected over one flow`;
  return new BrokerError(message, { transient: true });
}

/** How a queue is bound to. */
export type Bind = (options: FlowOptions, signal: AbortSignal) => Promise<Flow>;

/** A message that was received. */
interface Received {
  readonly flow: Flow;
  readonly message: solace.Message;
  readonly payload: Uint8Array;
}

/** The receiving half of a session. Lives as long as its connection. */
export class Intake {
  readonly deliveries: AsyncIterable<Delivery>;
  readonly #connection: SolaceConnection;
  readonly #options: IntakeOptions;
  /** By queue; a promise, so that whoever comes second waits for the first. */
  readonly #flows = new Map<string, Promise<Flow>>();
  /** Those that take from their queues. The one that has had the last message stands last. */
  readonly #open = new Map<Flow, Bind>();
  /** Those that take no more, and stay until what came through them is settled. */
  readonly #leaving = new Set<Flow>();
  /** Received and not handed out yet. */
  readonly #waiting: Received[] = [];
  /** Received and not settled. */
  #held = 0;
  #isCompleting = false;
  #isComplete = false;
  /** Resolves when there may be something to hand out, or nothing more to come. */
  #changed = Promise.withResolvers<void>();

  constructor(connection: SolaceConnection, options: IntakeOptions) {
    this.#connection = connection;
    this.#options = options;
    this.deliveries = { [Symbol.asyncIterator]: () => this.#deliver() };
    connection.ended.addEventListener("abort", () => this.#notify(), { once: true });
  }

  /** The flow from a queue, if there is one or one is being bound. */
  flowOf(queue: string): Promise<Flow> | undefined {
    return this.#flows.get(queue);
  }

  /** Takes from a queue; undefined when it is to take no more at all. Idempotent. Throws what `bind` throws. */
  async consume(queue: string, bind: Bind, signal: AbortSignal): Promise<Flow | undefined> {
    if (this.#isCompleting) return undefined;
    return this.#flows.get(queue) ?? this.#start(queue, bind, signal);
  }

  /** Takes no more from a queue; what came from it is handed out. Idempotent. */
  async cancel(queue: string): Promise<void> {
    const binding = this.#flows.get(queue);
    if (binding === undefined) return;
    this.#flows.delete(queue);
    try {
      await this.#retire(await binding);
    } catch {
      // What was never bound takes nothing; whoever wanted it has heard why.
    }
  }

  /** Takes no more from any queue; `deliveries` ends after what came. Never rejects. */
  async complete(): Promise<void> {
    this.#isCompleting = true;
    await Promise.all(Array.from(this.#flows.keys(), (queue) => this.cancel(queue)));
    this.#isComplete = true;
    this.#notify();
  }

  /** Lets all queues go and ends `deliveries`; the broker takes back what is not settled. Never rejects. */
  async close(): Promise<void> {
    this.#isCompleting = true;
    this.#isComplete = true;
    this.#waiting.length = 0;
    this.#notify();
    const bound = await Promise.allSettled(this.#flows.values());
    const flows = bound.flatMap((flow) => (flow.status === "fulfilled" ? [flow.value] : []));
    await Promise.all([...flows, ...this.#leaving].map((flow) => flow.close()));
  }

  #start(queue: string, bind: Bind, signal: AbortSignal): Promise<Flow> {
    const starting = this.#bind(queue, bind, signal);
    this.#flows.set(queue, starting);
    // What went wrong is told to those who wait.
    starting.catch(() => {
      if (this.#flows.get(queue) === starting) this.#flows.delete(queue);
    });
    return starting;
  }

  async #bind(queue: string, bind: Bind, signal: AbortSignal): Promise<Flow> {
    const former = this.#leaving.values().find((flow) => flow.queue === queue && !flow.isSpent);
    if (former !== undefined) this.#leaving.delete(former);
    const onMessage = (from: Flow, message: solace.Message): void => this.#received(from, message);
    const flow = former ?? (await bind({ queue, onMessage }, signal));
    this.#open.set(flow, bind);
    this.#regulate();
    return flow;
  }

  async #retire(flow: Flow): Promise<void> {
    this.#open.delete(flow);
    flow.setOpen(false);
    if (flow.held === 0) return flow.close();
    this.#leaving.add(flow);
  }

  #received(flow: Flow, message: solace.Message): void {
    const payload = payloadOf(message);
    if (payload === undefined) {
      this.#options.log.warn(
        { queue: flow.queue, topic: topicOf(message) },
        "message rejected that is neither binary nor text",
      );
      flow.settle(message, "rejected");
      return this.#renewIfSpent(flow);
    }
    flow.held++;
    this.#held++;
    const bind = this.#open.get(flow);
    if (bind !== undefined && this.#open.delete(flow)) this.#open.set(flow, bind);
    this.#regulate();
    // A session that closes gives it back.
    if (!this.#isComplete) this.#waiting.push({ flow, message, payload });
    this.#notify();
  }

  /** Opens the flows while there is room, one after the other, and stops them all when there is none. */
  #regulate(): void {
    for (const flow of [...this.#open.keys()]) flow.setOpen(this.#hasRoom);
  }

  /**
   * Another flow takes the place of one that has settled too much otherwise than as accepted: at a moment when none of its
   * messages is held, since those would go to others. Where such a moment does not come, another session does.
   */
  #renewIfSpent(flow: Flow): void {
    const bind = this.#open.get(flow);
    if (bind !== undefined && flow.isSpent && flow.held === 0) void this.#renew(flow, bind);
    else if (flow.isExhausted) this.#connection.lose(exhausted(flow));
  }

  async #renew(flow: Flow, bind: Bind): Promise<void> {
    this.#flows.delete(flow.queue);
    try {
      const next = this.consume(flow.queue, bind, this.#connection.ended);
      await Promise.all([this.#retire(flow), next]);
    } catch (error) {
      this.#connection.lose(error);
    }
  }

  get #hasRoom(): boolean {
    return this.#held < this.#options.maxUnsettled;
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

  #handOut({ flow, message, payload }: Received): Delivery {
    let isSettled = false;
    return {
      topic: topicOf(message),
      payload,
      redelivered: message.isRedelivered(),
      deliveryCount: deliveryCountOf(message),
      properties: propertiesOf(message),
      settle: async (outcome) => {
        if (isSettled) return;
        isSettled = true;
        flow.settle(message, outcome);
        flow.held--;
        this.#held--;
        this.#regulate();
        this.#renewIfSpent(flow);
        if (flow.held === 0 && this.#leaving.delete(flow)) await flow.close();
      },
    };
  }

  #notify(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }
}
