/**
 * A channel of its own for the calls of one queue: what the broker refuses of one queue concerns no other.
 */
import type { Channel, ConsumeMessage } from "amqplib";
import { abortable } from "../../support/within.ts";
import { BrokerError, type Settlement } from "../broker.ts";
import type { Room } from "../room.ts";
import type { AmqpConnection } from "./connection.ts";
import { Consumers } from "./consumers.ts";
import { commandFailure } from "./failures.ts";
import { Taking } from "./taking.ts";

/** Where calls go to. */
export interface TapOptions {
  /** Shared by the taps of a session. A call that came has a place in it until it is settled or forgotten. */
  readonly room: Room;
  readonly onCall: (tap: Tap, call: ConsumeMessage) => void;
  /** A tap is quiet now, or the room is crowded and it has been quiet before. */
  readonly onQuiet: () => void;
  /** Told when the broker has closed the tap: the calls that came through it are not ours any more. */
  readonly onLost: (tap: Tap) => void;
}

/** An open tap. Lives no longer than its connection. */
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
  readonly #taking: Taking;
  readonly #running: Promise<void>;
  #unsettled = 0;
  #isDry = false;
  #isClosed = false;

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
      onGone: () => this.#taking.consumerEnded(this.#unsettled > 0),
    });
    this.#taking = new Taking({
      room: options.room,
      consumers: this.#consumers,
      over: this.#over,
      countCalls: async () => (await this.#answered(channel.checkQueue(queue))).messageCount,
      answered: (answer) => this.#answered(answer),
      onProved: () => this.#proved.resolve(),
      onQuiet: options.onQuiet,
    });
    channel.on("error", (error: unknown) => this.#lose(error));
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

  /** Whether nothing comes through it, and its queue is there: what is settled `failed` goes to others. */
  get isQuiet(): boolean {
    return this.#taking.isQuiet;
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
    this.#taking.notify();
    this.#closeWhenDone();
  }

  /** Gives back the place of a call that is not ours any more. */
  forget(): void {
    this.#unsettled--;
    this.#options.room.remove();
  }

  /** Never rejects: what goes wrong closes the tap. */
  async #run(): Promise<void> {
    try {
      await this.#taking.run();
    } catch (error) {
      if (error !== this.#over.reason) this.#giveUp(error);
    }
    this.#proved.reject(this.#over.reason);
  }

  get #doing(): string {
    return `send from the queue ${this.queue}`;
  }

  #answered<T>(answer: Promise<T>): Promise<T> {
    const { ended } = this.#connection;
    return this.#connection.answered(answer, this.#doing, ended);
  }

  #receive(call: ConsumeMessage): void {
    // The broker takes back what comes while the channel is being closed.
    if (this.#isClosed) return;
    this.#unsettled++;
    this.#options.room.add();
    this.#options.onCall(this, call);
    this.#taking.received();
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
