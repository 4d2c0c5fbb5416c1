/**
 * The consumers of one queue on one channel. What one has got and is not settled counts; when it is settled more comes.
 */
import type { Channel, ConsumeMessage } from "amqplib";

/** What consumers take from, and who is told. */
export interface ConsumersOptions {
  readonly queue: string;
  readonly channel: Channel;
  readonly onCall: (call: ConsumeMessage) => void;
  /** The broker has ended a consumer: the queue is gone, or a call was not settled in time. */
  readonly onGone: () => void;
}

/** As many as are wanted. They end with the channel, or one after the other when they are not wanted. */
export class Consumers {
  readonly #options: ConsumersOptions;
  /** Those that calls may come through, the oldest first. */
  readonly #tags = new Set<string>();
  /** Those of them that have got a call which is not settled. */
  readonly #busy = new Set<string>();
  #last = 0;
  /** What the channel was told last; it goes for the consumers after it. */
  #prefetch: number | undefined;
  /** The fewest that had no call at once since that was last asked. */
  #leastIdle = 0;

  constructor(options: ConsumersOptions) {
    this.#options = options;
  }

  /** How many have no call. */
  get idle(): number {
    return this.#tags.size - this.#busy.size;
  }

  /**
   * Adds one that gets so many calls at once. Where it is `onlyOnce`, it ends with the first. Rejects with the channel's
   * error.
   */
  async add(prefetch: number, { onlyOnce = false } = {}): Promise<void> {
    const { channel, queue, onCall, onGone } = this.#options;
    if (this.#prefetch !== prefetch) await channel.prefetch(prefetch);
    this.#prefetch = prefetch;
    // What was not settled when a channel closes comes again in the order of these.
    const consumerTag = String(this.#last++).padStart(12, "0");
    const onMessage = (call: ConsumeMessage | null): void => {
      if (call === null) return onGone();
      if (this.#tags.has(consumerTag)) this.#busy.add(consumerTag);
      this.#leastIdle = Math.min(this.#leastIdle, this.idle);
      // Sent before the call can be settled: another would come in its place. What goes wrong ends the channel, too.
      if (onlyOnce) this.#cancel(consumerTag).catch(() => {});
      onCall(call);
    };
    this.#tags.add(consumerTag);
    try {
      await channel.consume(queue, onMessage, { consumerTag });
    } catch (error) {
      this.#forget(consumerTag);
      throw error;
    }
  }

  /** A call was settled that came through one of them. */
  settled({ fields }: ConsumeMessage): void {
    this.#busy.delete(fields.consumerTag);
  }

  /** How many were never needed since this was last asked. */
  takeSpare(): number {
    const spare = this.#leastIdle;
    this.#leastIdle = this.idle;
    return spare;
  }

  /** Ends some of those that have no call. Rejects with the channel's error. */
  async endIdle(count: number): Promise<void> {
    const idle = [...this.#tags.difference(this.#busy)].slice(-count);
    await Promise.all(idle.map((tag) => this.#cancel(tag)));
  }

  /** Ends them all; calls that came can still be settled. Rejects with the channel's error. */
  async end(): Promise<void> {
    await Promise.all(Array.from(this.#tags, (tag) => this.#cancel(tag)));
  }

  async #cancel(tag: string): Promise<void> {
    this.#forget(tag);
    await this.#options.channel.cancel(tag);
  }

  #forget(tag: string): void {
    this.#tags.delete(tag);
    this.#busy.delete(tag);
  }
}
