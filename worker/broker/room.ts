/**
 * How many calls a worker may hold, counted over all its queues: brokers have such a limit for each consumer only.
 */

/**
 * Milliseconds the room must have been full before the broker is asked to send nothing more. A call that crosses the request
 * is handed out again, and brokers count that: so it is made where it lasts, not between one short call and the next.
 */
const fullPatienceMs = 100;

/** A place that is kept for a call which is to come. Disposing it, more than once too, gives it back. */
export type Place = Disposable;

/** Who takes calls into the room. Must not throw. */
export interface Taker {
  /** The room has been full for `fullPatienceMs`, and there are others who take. */
  onCrowded(): void;
  /** There is room again, or all of it, or others came or went who take as well. */
  onRoom(): void;
}

/** Counts the calls that are held, and keeps places for others. What comes unasked may be more than there are places. */
export class Room {
  /** How many calls may be held. */
  readonly places: number;
  #held = 0;
  #reserved = 0;
  /** Insertion order is the order of arrival. */
  readonly #waiting = new Set<(place: Place) => void>();
  readonly #takers = new Set<Taker>();
  /** How many are about to take. */
  #expected = 0;
  /** Runs while the room is full. */
  #patience: NodeJS.Timeout | undefined;
  #isCrowded = false;

  constructor(places: number) {
    this.places = places;
  }

  /** Whether as many calls are held as may be. */
  get isFull(): boolean {
    return this.#held >= this.places;
  }

  /** Calls that are held beyond the places; negative when there are fewer. */
  get surplus(): number {
    return this.#held - this.places;
  }

  /** Whether no call is held. */
  get isEmpty(): boolean {
    return this.#held === 0;
  }

  /** Places that are neither taken nor kept; negative when more calls came than there were places. */
  get free(): number {
    return this.places - this.#held - this.#reserved;
  }

  /** Whether it has been full for `fullPatienceMs`. */
  get isCrowded(): boolean {
    return this.#isCrowded;
  }

  /** Whether several take calls into it, or will in a moment. */
  get isShared(): boolean {
    return Math.max(this.#takers.size, this.#expected) > 1;
  }

  /**
   * Says how many are about to join, one after the other, until the returned object is disposed: so that the first does not
   * begin as if it were alone.
   */
  expect(takers: number): Disposable {
    this.#expected = takers;
    return {
      [Symbol.dispose]: () => {
        this.#expected = 0;
        this.#tellOfRoom();
      },
    };
  }

  /** Whether somebody waits for a place. */
  get isContended(): boolean {
    return this.#waiting.size > 0;
  }

  /** Has a taker told what happens, until the returned object is disposed. */
  join(taker: Taker): Disposable {
    this.#takers.add(taker);
    this.#tellOfRoom();
    return {
      [Symbol.dispose]: () => {
        this.#takers.delete(taker);
        this.#tellOfRoom();
      },
    };
  }

  /** A place if there is one. Its owner gives it back, after it has added the call that came. */
  tryReserve(): Place | undefined {
    if (this.free <= 0) return undefined;
    this.#reserved++;
    let isKept = true;
    return {
      [Symbol.dispose]: () => {
        if (!isKept) return;
        isKept = false;
        this.#reserved--;
        this.#grant();
      },
    };
  }

  /** Waits for such a place, first come first served. Rejects with the signal's reason. */
  async reserve(signal: AbortSignal): Promise<Place> {
    signal.throwIfAborted();
    const place = this.tryReserve();
    if (place !== undefined) return place;
    const given = Promise.withResolvers<Place>();
    const onAbort = (): void => {
      if (this.#waiting.delete(given.resolve)) given.reject(signal.reason);
    };
    this.#waiting.add(given.resolve);
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      return await given.promise;
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }

  /** A call came, whether there was a place for it or not. */
  add(): void {
    this.#held++;
    if (!this.isFull || this.#patience !== undefined) return;
    const tellAll = (): void => {
      this.#isCrowded = true;
      if (!this.isShared) return;
      for (const taker of this.#takers) taker.onCrowded();
    };
    this.#patience = setTimeout(tellAll, fullPatienceMs).unref();
  }

  /** A call is held no more. */
  remove(): void {
    const wasFull = this.isFull;
    this.#held--;
    this.#grant();
    const hasRoomAgain = wasFull && !this.isFull;
    if (hasRoomAgain) {
      clearTimeout(this.#patience);
      this.#patience = undefined;
      this.#isCrowded = false;
    }
    if (hasRoomAgain || this.isEmpty) this.#tellOfRoom();
  }

  #tellOfRoom(): void {
    for (const taker of this.#takers) taker.onRoom();
  }

  #grant(): void {
    for (const give of this.#waiting) {
      const place = this.tryReserve();
      if (place === undefined) return;
      this.#waiting.delete(give);
      give(place);
    }
  }
}
