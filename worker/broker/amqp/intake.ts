/**
 * The line of calls between the taps and who pulls them.
 */
import type { ConsumeMessage } from "amqplib";
import type { Delivery } from "../broker.ts";
import type { AmqpConnection } from "./connection.ts";
import { deliveryCount, toProperties } from "./headers.ts";
import { Room } from "./room.ts";
import { topicOf } from "./routing-keys.ts";
import type { Tap, TapOptions } from "./tap.ts";

/** How much to take, and what the broker keeps to. */
export interface IntakeOptions {
  /**
   * Deliveries that are handed out and not settled, at most. As many are taken from all queues together; of calls that come
   * in the same moment one of each queue may be taken besides, and waits here.
   */
  readonly maxUnsettled: number;
  /** How often the broker hands a call out. */
  readonly maxDeliveries: number;
}

/** A call that was not handed out yet. */
interface Waiting {
  readonly tap: Tap;
  readonly call: ConsumeMessage;
}

/** The receiving half of a session. Lives as long as its connection. */
export class Intake {
  readonly deliveries: AsyncIterable<Delivery>;
  /** What taps are opened with. */
  readonly tapOptions: TapOptions;
  readonly #connection: AmqpConnection;
  readonly #options: IntakeOptions;
  /** Bounded by the room, and one call more for each queue. */
  #waiting: Waiting[] = [];
  #unsettled = 0;
  #isComplete = false;
  /** Resolves when there may be something to hand out, or nothing more to come. */
  #changed = Promise.withResolvers<void>();

  constructor(connection: AmqpConnection, options: IntakeOptions) {
    this.#connection = connection;
    this.#options = options;
    this.deliveries = { [Symbol.asyncIterator]: () => this.#deliver() };
    this.tapOptions = {
      room: new Room(options.maxUnsettled),
      onCall: (tap, call) => {
        this.#waiting.push({ tap, call });
        this.#notify();
      },
      onLost: (tap) => this.#forget(tap),
    };
    connection.ended.addEventListener("abort", () => this.#notify(), { once: true });
  }

  /** Nothing more comes: `deliveries` ends after what has come. */
  complete(): void {
    this.#isComplete = true;
    this.#notify();
  }

  /** Drops what came through a tap and was not handed out: the broker hands it to others. */
  #forget(tap: Tap): void {
    const lost = this.#waiting.filter((waiting) => waiting.tap === tap);
    this.#waiting = this.#waiting.filter((waiting) => waiting.tap !== tap);
    for (const _call of lost) tap.forget();
    this.#notify();
  }

  async *#deliver(): AsyncGenerator<Delivery, void> {
    // What was received when the connection ended is not ours any more.
    while (!this.#connection.ended.aborted) {
      const mayHandOut = this.#unsettled < this.#options.maxUnsettled;
      const next = mayHandOut ? this.#waiting.shift() : undefined;
      if (next !== undefined) yield this.#handOut(next);
      else if (this.#isComplete && this.#waiting.length === 0) return;
      else await this.#changed.promise;
    }
  }

  #handOut({ tap, call }: Waiting): Delivery {
    const { headers } = call.properties;
    const { redelivered, routingKey } = call.fields;
    let isSettled = false;
    this.#unsettled++;
    return {
      topic: topicOf(routingKey),
      payload: call.content,
      redelivered,
      deliveryCount: deliveryCount(headers, redelivered),
      maxDeliveries: this.#options.maxDeliveries,
      properties: toProperties(headers),
      settle: async (outcome) => {
        if (isSettled) return;
        isSettled = true;
        this.#unsettled--;
        tap.settle(call, outcome);
        this.#notify();
      },
    };
  }

  #notify(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }
}
