/**
 * When the broker may send calls from one queue: as long as there is room for the calls of all queues.
 */
import type { Place, Room } from "../room.ts";
import type { Consumers } from "./consumers.ts";
import { ConsumerEndedError } from "./failures.ts";

/** Milliseconds within which a call comes that was there; after them another worker has it. */
const expectedWithinMs = 100;

/** Milliseconds for which a consumer must have been of no use to be ended, where others want to take calls as well. */
const spareAfterMs = 1_000;

/** What taking takes, and who is told. */
export interface TakingParts {
  /** Shared by all queues of a session. Calls are added to it by whoever is told of them. */
  readonly room: Room;
  readonly consumers: Consumers;
  /** Aborts when nothing is to be taken any more. */
  readonly over: AbortSignal;
  /** How many calls wait in the queue. */
  countCalls(): Promise<number>;
  /** Waits for what the broker answers to a command. */
  answered<T>(answer: Promise<T>): Promise<T>;
  /** The broker lets us take from the queue, as far as that can be told without room for a call. */
  onProved(): void;
  /** Nothing comes any more, or the room is crowded and nothing has come for a while. */
  onQuiet(): void;
}

/**
 * Takes calls from one queue.
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
 * RabbitMQ has no limit that the queues of a worker share (quorum queues refuse such a prefetch). So a queue that is listened to
 * has as many consumers, each for one call at a time, as calls of it run here, and one more as long as the room is not full:
 * what comes to several queues in one moment may be more than the room has places for, by one of each. A queue alone has
 * one consumer for as many calls as there are places, as soon as it can have all of them. When calls last so long that the room
 * stays full, nobody listens any more, and the queues have their turns one call after the other.
 */
export class Taking {
  readonly #parts: TakingParts;
  #received = 0;
  #isCrowded = false;
  #end: ConsumerEndedError | undefined;
  #isQuiet = true;
  /** Resolves when there may be something to do. */
  #changed = Promise.withResolvers<void>();

  constructor(parts: TakingParts) {
    this.#parts = parts;
    parts.over.addEventListener("abort", () => this.notify(), { once: true });
  }

  /** Whether the queue is there, and nothing comes from it: what is given back to it goes to others. */
  get isQuiet(): boolean {
    return this.#isQuiet && this.#end === undefined;
  }

  /** A call came. */
  received(): void {
    this.#received++;
    this.notify();
  }

  /** The broker has ended a consumer; whether calls that came from the queue were not settled then. */
  consumerEnded(hadCalls: boolean): void {
    this.#end ??= new ConsumerEndedError(hadCalls);
    this.notify();
  }

  /** The consumers may have other calls than before. */
  notify(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }

  /** Takes calls until nothing is to be taken any more. Rejects with what goes wrong, or the reason for the end. */
  async run(): Promise<void> {
    const { room, countCalls, onProved, onQuiet } = this.#parts;
    using _taker = room.join({
      onCrowded: () => {
        this.#isCrowded = true;
        this.notify();
        if (this.#isQuiet) onQuiet();
      },
      onRoom: () => this.notify(),
    });
    while (this.#mayTake) {
      using place = await this.#place();
      const calls = await countCalls();
      this.#isQuiet = false;
      if (calls > 0 && room.isContended) {
        await this.#takeOne();
      } else {
        place[Symbol.dispose]();
        await this.#listen();
      }
      this.#isQuiet = true;
      onQuiet();
      onProved();
    }
  }

  async #place(): Promise<Place> {
    const { room, over, onProved } = this.#parts;
    const place = room.tryReserve();
    if (place !== undefined) return place;
    onProved();
    return room.reserve(over);
  }

  /** Takes a call that should be there. */
  async #takeOne(): Promise<void> {
    const { consumers, answered } = this.#parts;
    const before = this.#received;
    let isLate = false;
    const late = setTimeout(() => {
      isLate = true;
      this.notify();
    }, expectedWithinMs);
    try {
      await answered(consumers.add(1, { onlyOnce: true }));
      while (this.#received === before && !isLate && this.#mayTake) await this.#changed.promise;
      await answered(consumers.end());
    } finally {
      clearTimeout(late);
    }
  }

  /** Until the room is crowded, others come or go, or nothing is to be taken any more. */
  async #listen(): Promise<void> {
    const { room, consumers, answered, onProved } = this.#parts;
    this.#isCrowded = room.isFull && room.isShared;
    if (this.#mustShare) {
      await this.#share();
    } else {
      await answered(consumers.add(room.places));
      onProved();
      while (this.#mayTake && !room.isShared) await this.#changed.promise;
    }
    await answered(consumers.end());
  }

  /** Whether there are others, or calls that came through former consumers: the broker would not count those. */
  get #mustShare(): boolean {
    const { room } = this.#parts;
    return room.isShared || !room.isEmpty;
  }

  /** Listens beside others: has one call come unasked as long as the room is not full. */
  async #share(): Promise<void> {
    const { room, consumers, answered, onProved } = this.#parts;
    let spare = 0;
    const looking = setInterval(() => {
      spare = consumers.takeSpare();
      if (spare > 1) this.notify();
    }, spareAfterMs);
    try {
      while (this.#mayTake && !this.#isCrowded && this.#mustShare) {
        const surplus = Math.min(spare, consumers.idle) - 1;
        spare = 0;
        if (surplus > 0) {
          await answered(consumers.endIdle(surplus));
        } else if (consumers.idle === 0 && !room.isFull) {
          await answered(consumers.add(1));
          onProved();
        } else {
          await this.#changed.promise;
        }
      }
    } finally {
      clearInterval(looking);
    }
  }

  /** Throws when the broker has ended a consumer. */
  get #mayTake(): boolean {
    if (this.#end !== undefined) throw this.#end;
    return !this.#parts.over.aborted;
  }
}
