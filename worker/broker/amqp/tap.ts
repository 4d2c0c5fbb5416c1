/**
 * Takes calls from one queue, on a channel of its own: what the broker refuses of one queue concerns no other.
 */
import type { Channel, ConsumeMessage } from "amqplib";
import { abortable } from "../abortable.ts";
import { BrokerError, type Settlement } from "../broker.ts";
import type { AmqpConnection } from "./connection.ts";
import { commandFailure } from "./failures.ts";
import { Consumers } from "./consumers.ts";
import type { Place, Room } from "./room.ts";

/** Milliseconds within which a call comes that was there; after them another worker has it. */
const expectedWithinMs = 100;

/** Milliseconds for which a consumer must have been of no use to be ended, where others want to take calls as well. */
const spareAfterMs = 1_000;

/** Where calls go to. */
export interface TapOptions {
  /** Shared by the taps of a session. A call that came has a place in it until it is settled or forgotten. */
  readonly room: Room;
  readonly onCall: (tap: Tap, call: ConsumeMessage) => void;
  /** Told when the broker has closed the tap: the calls that came through it are not ours any more. */
  readonly onLost: (tap: Tap) => void;
}

/**
 * An open tap. Lives no longer than its connection.
 *
 * ```
 *              the room has been full for a while
 *   listening ────────────────────────────────────► waiting for a place ──► looking whether a call is there
 *       ▲                                                    ▲                  │               │
 *       │                                                    │     a call, and others wait as well
 *       │                                                    └── taking one ◄───┘               │
 *       └─────────────────────────────────── none, or nobody else waits ────────────────────────┘
 * ```
 *
 * RabbitMQ has no limit that the queues of a worker share (quorum queues refuse such a prefetch). So a tap that listens has as
 * many consumers, each for one call at a time, as calls of its queue run here, and one more as long as the room is not full:
 * what comes to several queues in one moment may be more than the room has places for, by one of each. A tap alone has
 * one consumer for as many calls as there are places. When calls last so long that the room stays full, nobody listens any more, and the queues have their
 * turns one call after the other.
 */
export class Tap {
  readonly queue: string;
  /** Fulfils with the reason when the broker has closed the tap; never where that was asked for, or with its connection. */
  readonly lost: Promise<BrokerError>;
  readonly #connection: AmqpConnection;
  readonly #channel: Channel;
  readonly #options: TapOptions;
  readonly #loss = Promise.withResolvers<BrokerError>();
  readonly #stopping = new AbortController();
  /** Aborts when nothing is to be taken any more. */
  readonly #over: AbortSignal;
  /** Fulfils when the broker lets us take from the queue, as far as that can be told without room for a call. */
  readonly #proved = Promise.withResolvers<void>();
  readonly #consumers: Consumers;
  readonly #running: Promise<void>;
  #unsettled = 0;
  #received = 0;
  #isCrowded = false;
  #isQueueGone = false;
  #isDry = false;
  #isClosed = false;
  /** Resolves when there may be something to do. */
  #changed = Promise.withResolvers<void>();

  private constructor(
    connection: AmqpConnection,
    channel: Channel,
    queue: string,
    options: TapOptions,
  ) {
    this.queue = queue;
    this.lost = this.#loss.promise;
    this.#connection = connection;
    this.#channel = channel;
    this.#options = options;
    this.#over = AbortSignal.any([this.#stopping.signal, connection.ended]);
    this.#consumers = new Consumers({
      channel,
      queue,
      onCall: (call) => this.#receive(call),
      onGone: () => {
        this.#isQueueGone = true;
        this.#notify();
      },
    });
    channel.on("error", (error: unknown) => this.#lose(error));
    this.#over.addEventListener("abort", () => this.#notify(), { once: true });
    this.#running = this.#run();
  }

  /** Opens a tap on a queue that is there. Throws BrokerError, or the signal's reason; leaves nothing open then. */
  static async open(
    connection: AmqpConnection,
    queue: string,
    options: TapOptions,
    signal: AbortSignal,
  ): Promise<Tap> {
    const channel = await connection.openChannel(signal);
    const tap = new Tap(connection, channel, queue, options);
    try {
      await abortable(tap.#proved.promise, signal);
      return tap;
    } catch (error) {
      tap.#lose(error);
      throw error;
    }
  }

  /** Takes no more. What came can still be settled, and the last of it closes the channel. Never rejects. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
    this.#isDry = true;
    this.#closeWhenDone();
  }

  /** Tells the broker how a call ended. Nothing when the channel is gone: the broker has the call again. */
  settle(call: ConsumeMessage, outcome: Settlement): void {
    const isGone = this.#isClosed || this.#connection.ended.aborted;
    if (!isGone && outcome === "accepted") this.#channel.ack(call);
    // Since 4.3 RabbitMQ does not count what comes back by `nack`.
    else if (!isGone) this.#channel.reject(call, outcome === "failed");
    this.#consumers.settled(call);
    this.forget();
    this.#notify();
    this.#closeWhenDone();
  }

  /** Gives back the place of a call that is not ours any more. */
  forget(): void {
    this.#unsettled--;
    this.#options.room.remove();
  }

  /** Never rejects: what goes wrong closes the tap. */
  async #run(): Promise<void> {
    const { room } = this.#options;
    using _taker = room.join({
      onCrowded: () => {
        this.#isCrowded = true;
        this.#notify();
      },
      onRoom: () => this.#notify(),
    });
    try {
      while (!this.#over.aborted) {
        using place = await this.#place();
        const { messageCount } = await this.#answered(this.#channel.checkQueue(this.queue));
        if (messageCount > 0 && room.isContended) {
          await this.#takeOne();
        } else {
          place[Symbol.dispose]();
          await this.#listen();
        }
        this.#proved.resolve();
      }
    } catch (error) {
      if (error !== this.#over.reason) this.#giveUp(error);
    }
    this.#proved.reject(this.#over.reason);
  }

  async #place(): Promise<Place> {
    const { room } = this.#options;
    const place = room.tryReserve();
    if (place !== undefined) return place;
    this.#proved.resolve();
    return room.reserve(this.#over);
  }

  /** Takes a call that should be there. */
  async #takeOne(): Promise<void> {
    const before = this.#received;
    let isLate = false;
    const late = setTimeout(() => {
      isLate = true;
      this.#notify();
    }, expectedWithinMs);
    try {
      await this.#answered(this.#consumers.add(1, { onlyOnce: true }));
      while (this.#received === before && !isLate && this.#mayTake) await this.#changed.promise;
      await this.#answered(this.#consumers.end());
    } finally {
      clearTimeout(late);
    }
  }

  /** Until the room is crowded, others come or go, or nothing is to be taken any more. */
  async #listen(): Promise<void> {
    const { room } = this.#options;
    const { isShared } = room;
    this.#isCrowded = room.isFull && isShared;
    if (isShared) {
      await this.#share();
    } else {
      await this.#answered(this.#consumers.add(room.places));
      this.#proved.resolve();
      while (this.#mayTake && !room.isShared) await this.#changed.promise;
    }
    await this.#answered(this.#consumers.end());
  }

  /** Listens beside others: has one call come unasked as long as the room is not full. */
  async #share(): Promise<void> {
    const { room } = this.#options;
    const consumers = this.#consumers;
    let spare = 0;
    const looking = setInterval(() => {
      spare = consumers.takeSpare();
      if (spare > 1) this.#notify();
    }, spareAfterMs);
    try {
      while (this.#mayTake && !this.#isCrowded && room.isShared) {
        const surplus = Math.min(spare, consumers.idle) - 1;
        spare = 0;
        if (surplus > 0) {
          await this.#answered(consumers.endIdle(surplus));
        } else if (consumers.idle === 0 && !room.isFull) {
          await this.#answered(consumers.add(1));
          this.#proved.resolve();
        } else {
          await this.#changed.promise;
        }
      }
    } finally {
      clearInterval(looking);
    }
  }

  /** Throws when there is no queue to take from any more. */
  get #mayTake(): boolean {
    if (this.#isQueueGone) {
      throw new BrokerError("The queue was deleted or moved", { transient: true });
    }
    return !this.#over.aborted;
  }

  get #doing(): string {
    return `send from the queue ${this.queue}`;
  }

  #answered<T>(answer: Promise<T>): Promise<T> {
    const { ended } = this.#connection;
    return this.#connection.answered(answer, this.#doing, ended);
  }

  #receive(call: ConsumeMessage): void {
    this.#unsettled++;
    this.#received++;
    this.#options.room.add();
    this.#options.onCall(this, call);
    this.#notify();
  }

  #notify(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }

  #closeWhenDone(): void {
    if (!this.#isDry || this.#unsettled > 0 || this.#isClosed) return;
    this.#isClosed = true;
    void this.#connection.release(this.#channel);
  }

  /** Takes no more since something went wrong. Calls that came are ours as long as the broker has not closed the channel. */
  #giveUp(error: unknown): void {
    const cause = error instanceof BrokerError ? error : commandFailure(error, this.#doing);
    this.#stopping.abort(cause);
    if (!this.#isClosed) this.#consumers.end().catch(() => {});
    this.#isDry = true;
    this.#closeWhenDone();
    this.#loss.resolve(cause);
  }

  #lose(error: unknown): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    void this.#connection.release(this.#channel);
    this.#options.onLost(this);
    this.#giveUp(error);
  }
}
