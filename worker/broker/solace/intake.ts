/**
 * The line of calls between the queues and who pulls them; each is settled on the flow that it came through.
 */
import type solace from "solclientjs";
import type { Clock } from "../../support/clock.ts";
import type { CarriedWork, Delivery } from "../broker.ts";
import { mayHandBack } from "../hand-back.ts";
import type { BrokerLog } from "../log.ts";
import { Room } from "../room.ts";
import type { SolaceConnection } from "./connection.ts";
import type { Flow } from "./flow.ts";
import { deliveryCountOf, payloadOf, propertiesOf, topicOf } from "./messages.ts";
import type { Source } from "./source.ts";
import { Turns } from "./turns.ts";

/** How much to take. */
export interface IntakeOptions {
  /**
   * Deliveries that are handed out and not settled, at most. As many are taken from all queues together; of those that must
   * not go back to the broker one of each queue may be taken besides, and waits here.
   */
  readonly maxUnsettled: number;
  /** How often a queue hands a message out that has no limit of its own, as far as the worker is concerned. */
  readonly maxDeliveries: number;
  readonly log: BrokerLog;
  readonly clock: Clock;
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
  /** Whose turn it is to bring calls. */
  readonly turns: Turns;
  readonly #connection: SolaceConnection;
  readonly #options: IntakeOptions;
  /** Queues of which has been told that they do not count deliveries. */
  readonly #uncounted = new Set<string>();
  /** When a replay to a queue began, in epoch milliseconds. */
  readonly #replayedAtMs = new Map<string, number>();
  /** Received and not handed out yet. */
  #waiting: Received[] = [];
  /** Handed out and not settled. */
  #unsettled = 0;
  #isComplete = false;
  #isClosed = false;
  /** Resolves when there may be something to hand out, or nothing more to come. */
  #changed = Promise.withResolvers<void>();

  constructor(
    connection: SolaceConnection,
    options: IntakeOptions,
    carried: CarriedWork | undefined,
  ) {
    this.#connection = connection;
    this.#options = options;
    const room = new Room(options.maxUnsettled);
    const turns = new Turns(room, options.clock, connection.ended);
    carried?.takePlaces({
      places: room.places,
      add: () => room.add(),
      // The queues are told as well.
      remove: () => turns.done(),
    });
    this.turns = turns;
    this.deliveries = { [Symbol.asyncIterator]: () => this.#deliver() };
    connection.ended.addEventListener("abort", () => this.#notify(), { once: true });
  }

  /** Takes a message that came through a flow. */
  receive(source: Source, flow: Flow, message: solace.Message): void {
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
    this.turns.took(source);
    void source.extend();
    // A session that closes gives it back.
    if (!this.#isClosed) this.#waiting.push({ source, flow, message, payload });
    this.#notify();
  }

  /** Whether the calls of a queue may be delivered once more than it takes to run them. */
  maySpareDelivery(flow: Flow): boolean {
    const first = { redelivered: false, deliveryCount: 1 };
    return mayHandBack({ ...first, maxDeliveries: this.#limitOf(flow) }, true);
  }

  /** Whether the broker may count one delivery more of a call that was not begun, and may be repeated. */
  mayGoBack(flow: Flow, message: solace.Message): boolean {
    return mayHandBack(this.#historyOf(flow, message), true);
  }

  /** Drops what came through a flow that was lost and was not handed out: it comes again, and is nobody's here. */
  forget(flow: Flow): void {
    const kept = this.#waiting.filter((received) => received.flow !== flow);
    const lost = this.#waiting.length - kept.length;
    this.#waiting = kept;
    this.turns.done(lost);
  }

  /** From now on calls of a queue that were sent before may be replayed ones: some worker may have run and answered them. */
  expectReplay(queue: string): void {
    this.#options.log.warn({ queue }, "broker replays calls");
    this.#replayedAtMs.set(queue, this.#options.clock.nowMs());
  }

  /** Nothing more comes: `deliveries` ends after what has come. */
  complete(): void {
    this.#isComplete = true;
    this.#notify();
  }

  /** Hands nothing more out. */
  close(): void {
    this.#isClosed = true;
    this.#waiting = [];
    this.complete();
  }

  async *#deliver(): AsyncGenerator<Delivery, void> {
    // What was received when the connection ended is not ours any more.
    while (!this.#connection.ended.aborted) {
      const mayHandOut = this.#unsettled < this.#options.maxUnsettled;
      const received = mayHandOut ? this.#waiting.shift() : undefined;
      if (received !== undefined) yield this.#handOut(received);
      else if (this.#isComplete && this.#waiting.length === 0) return;
      else await this.#changed.promise;
    }
  }

  #handOut({ source, flow, message, payload }: Received): Delivery {
    let isSettled = false;
    this.#unsettled++;
    return {
      topic: topicOf(message),
      payload,
      ...this.#historyOf(flow, message),
      properties: propertiesOf(message),
      settle: async (outcome) => {
        if (isSettled) return;
        isSettled = true;
        this.#unsettled--;
        flow.settle(message, outcome);
        this.turns.done();
        this.#notify();
        await source.tidy(flow);
      },
    };
  }

  #historyOf(
    flow: Flow,
    message: solace.Message,
  ): Pick<Delivery, "redelivered" | "deliveryCount" | "maxDeliveries"> {
    return {
      redelivered: message.isRedelivered() || this.#mayBeReplayed(flow, message),
      deliveryCount: this.#deliveryCountOf(message, flow),
      maxDeliveries: this.#limitOf(flow),
    };
  }

  /** The broker hands replayed messages out as new ones. */
  #mayBeReplayed({ queue }: Flow, message: solace.Message): boolean {
    const replayedAtMs = this.#replayedAtMs.get(queue);
    return replayedAtMs !== undefined && Number(propertiesOf(message)["timestamp"]) < replayedAtMs;
  }

  #limitOf(flow: Flow): number {
    return flow.maxDeliveries ?? this.#options.maxDeliveries;
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
