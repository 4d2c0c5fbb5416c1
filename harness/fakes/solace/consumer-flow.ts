/**
 * The way of messages from a queue to one consumer.
 */
import { type Message, encodeHandout } from "./wire/message.ts";
import type { Response } from "./wire/params.ts";

/** A message in a queue. */
export interface Spooled {
  readonly message: Message;
  /** Its place among the messages of its queue, which it keeps when it comes back. */
  readonly sequence: number;
  /** Epoch milliseconds; undefined when it never expires. */
  readonly expiresAtMs: number | undefined;
  /** How often it was handed out. */
  deliveries: number;
  /** Where it was handed out last: the origin of the flow, and the id. */
  sentAs: { readonly origin: number; readonly id: number } | undefined;
}

/** The client at the other end. */
export interface Receiver {
  readonly clientName: string;
  /** Whether so much is on its way to it that no more should follow for now. */
  isBusy(): boolean;
  send(bytes: Buffer): void;
  /** The broker ends the flow, and says why. */
  unbind(flow: ConsumerFlow, reason: Response): void;
}

/**
 * One consumer of a queue. Two windows bound what is on its way: the client's, opened by the
 * receipts that its library sends for every message, and the queue's, opened by what the
 * application settles.
 */
export class ConsumerFlow {
  readonly id: number;
  readonly receiver: Receiver;
  /** Handed out and not settled, by id, in order. */
  readonly unsettled = new Map<number, Spooled>();
  /** The first of the flows that this one continues; its own id when it continues none. */
  #origin: number;
  /**
   * Messages that the client takes without a receipt; 0 until it says that it is ready, and when it
   * pauses.
   */
  #window = 0;
  #lastSent = 0;
  #lastReceived = 0;
  /** Ids without receipt, in order: at most one window. */
  readonly #unreceived: number[] = [];

  constructor(id: number, receiver: Receiver) {
    this.id = id;
    this.#origin = id;
    this.receiver = receiver;
  }

  /** Whether the client can be handed another message. */
  get isReady(): boolean {
    return this.#unreceived.length < this.#window && !this.receiver.isBusy();
  }

  /** Whether the client may name this id as the last one that it received here. */
  hasSent(id: number): boolean {
    return id !== 0 && (id === this.#lastReceived || this.#unreceived.includes(id));
  }

  /** Takes the place of a flow whose connection was lost. */
  continue(former: ConsumerFlow, lastReceived: number): void {
    this.#origin = former.#origin;
    this.#lastReceived = lastReceived;
  }

  /** The client says which message it received last, and how many may be on their way. */
  acknowledge(lastReceived: number, window: number): void {
    this.#window = window;
    if (lastReceived > this.#lastReceived) this.#lastReceived = lastReceived;
    while ((this.#unreceived[0] ?? Infinity) <= lastReceived) this.#unreceived.shift();
  }

  /**
   * Hands a message out. A client drops an id that it knows, and repeats how it settled it: so a
   * message comes under its former id to the flow that may still have it in hand, and under a new
   * one (greater than all before) to any other.
   */
  handOut(spooled: Spooled, newId: () => number): void {
    const { sentAs } = spooled;
    const isRepeated = sentAs?.origin === this.#origin && sentAs.id > this.#lastSent;
    const id = isRepeated ? sentAs.id : newId();
    const redeliveries = spooled.deliveries++;
    spooled.sentAs = { origin: this.#origin, id };
    this.unsettled.set(id, spooled);
    this.#unreceived.push(id);
    const previousId = this.#lastSent;
    this.#lastSent = id;
    this.receiver.send(
      encodeHandout(spooled.message, { flowId: this.id, id, previousId, redeliveries }),
    );
  }
}
