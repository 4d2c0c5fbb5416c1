/**
 * The line of calls between the taps and who pulls them.
 */
import type { ConsumeMessage } from "amqplib";
import type { CarriedWork, Delivery } from "../broker.ts";
import { mayHandBack } from "../hand-back.ts";
import { Room } from "../room.ts";
import type { AmqpConnection } from "./connection.ts";
import { type AnswerFields, answerProperties, brokerTimeOf, deliveryCount } from "./headers.ts";
import { topicOf } from "./routing-keys.ts";
import type { Tap, TapOptions } from "./tap.ts";
import type { Topology } from "./topology.ts";

/** How much to take, and what the broker keeps to. */
export interface IntakeOptions {
  /**
   * Deliveries that are handed out and not settled, at most. As many are taken from all queues together; of calls that come
   * in the same moment one of each queue may be taken besides. It waits here, and goes back when that lasts.
   */
  readonly maxUnsettled: number;
  /** How often the broker hands a call out. */
  readonly maxDeliveries: number;
  /** Whether a call of a tool may be handed out again, as it is now. Where nobody says so, none may. */
  readonly isRepeatable?: (toolName: string) => boolean;
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
  readonly #topology: Pick<Topology, "toolOf">;
  readonly #options: IntakeOptions;
  /** Bounded by the room, and one call more for each queue. */
  #waiting: Waiting[] = [];
  #unsettled = 0;
  #isComplete = false;
  /** Resolves when there may be something to hand out, or nothing more to come. */
  #changed = Promise.withResolvers<void>();

  constructor(
    connection: AmqpConnection,
    topology: Pick<Topology, "toolOf">,
    options: IntakeOptions,
    carried: CarriedWork | undefined,
  ) {
    this.#connection = connection;
    this.#topology = topology;
    this.#options = options;
    this.deliveries = { [Symbol.asyncIterator]: () => this.#deliver() };
    const room = new Room(options.maxUnsettled);
    carried?.takePlaces(room);
    this.tapOptions = {
      room,
      onCall: (tap, call) => {
        this.#waiting.push({ tap, call });
        this.#notify();
      },
      onQuiet: () => this.#handBack(),
      onLost: (tap) => this.#forget(tap),
    };
    connection.ended.addEventListener("abort", () => this.#notify(), { once: true });
  }

  /** Nothing more comes: `deliveries` ends after what has come. */
  complete(): void {
    this.#isComplete = true;
    this.#notify();
  }

  /**
   * While the room is crowded: gives back what waits beyond its places, the newest first, for workers that have room. What came
   * through a tap that is not quiet yet goes when it is: now it would come right back.
   */
  #handBack(): void {
    const { room } = this.tapOptions;
    const { surplus } = room;
    if (!room.isCrowded || surplus <= 0) return;
    const going = this.#waiting.toReversed().filter((waiting) => this.#mayGo(waiting));
    for (const waiting of going.slice(0, surplus)) {
      if (!waiting.tap.isQuiet) continue;
      this.#waiting.splice(this.#waiting.indexOf(waiting), 1);
      waiting.tap.settle(waiting.call, "failed");
    }
  }

  #mayGo({ call }: Waiting): boolean {
    const { maxDeliveries, isRepeatable } = this.#options;
    const tool = this.#topology.toolOf(call.fields.routingKey);
    const mayRepeat = tool !== undefined && isRepeatable?.(tool) === true;
    return mayHandBack({ ...countsOf(call), maxDeliveries }, mayRepeat);
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
    let isSettled = false;
    this.#unsettled++;
    return {
      topic: topicOf(call.fields.routingKey),
      payload: call.content,
      ...countsOf(call),
      ...brokerTimeOf(call.properties.headers),
      maxDeliveries: this.#options.maxDeliveries,
      ...answerProperties(call.properties as AnswerFields),
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

function countsOf({
  fields,
  properties,
}: ConsumeMessage): Pick<Delivery, "redelivered" | "deliveryCount"> {
  const { redelivered } = fields;
  return { redelivered, deliveryCount: deliveryCount(properties.headers, redelivered) };
}
