/**
 * Which queues take calls when there is not room for those of all.
 *
 * ```
 *            the room has been full for a while, and no call of the queue is held
 *   bound ───────────────────────────────────────────────────────────────────────► parked
 *     ▲                                                                               │ its turn, and a place
 *     └───────────── a call came, or it was looked for in vain ───────────────── looking for a call
 * ```
 *
 * The library takes one call of each flow in hand, whether it is wanted or not. So the queues of a worker that is busy for
 * long are let go, and others get their calls; while calls are short all queues stay bound.
 */
import { setImmediate } from "node:timers/promises";
import type { Clock } from "../../support/clock.ts";
import type { Place, Room } from "../room.ts";
import type { Flow } from "./flow.ts";

/**
 * Milliseconds for which a room must have been crowded for queues to be parked. Parking costs the calls in hand a delivery:
 * while calls end more often than that, each queue has its turn soon.
 */
const busyForMs = 400;

/** Milliseconds that a queue waits for its turn before it is parked as well, however often calls end. */
const waitsForMs = 2_000;

/** Milliseconds within which a call comes from a queue that has one, once it is bound: as long as that took, and at least. */
const firstWithinMs = 100;
const firstNotBeforeMs = 20;

/** Milliseconds for which a place is kept while a queue is being bound. */
const bindMs = 1_000;

/** A queue that calls are taken from. */
export interface TurnTaker {
  /** Whether it is to be looked into in its turn, since calls of it do not come by themselves. */
  readonly isParked: boolean;
  /** What calls come through while it is not. */
  readonly flows: Iterable<Pick<Flow, "setOpen">>;
  /** Lets the queue go, if it may. */
  park(): void;
  /** Binds to it again. Whether it could. Never rejects. */
  resume(): Promise<boolean>;
}

/** A place that is kept for a call which may come. */
interface Look {
  readonly place: Place;
  /** Aborts when the call came, or is not wanted any more. */
  readonly over: AbortController;
}

/** Those of a session. Ends with its connection. */
export class Turns {
  readonly #room: Room;
  readonly #clock: Clock;
  readonly #ended: AbortSignal;
  /** With their seats in the room. The one that has had its turn last stands last. */
  readonly #takers = new Map<TurnTaker, Disposable>();
  readonly #looks = new Map<TurnTaker, Look>();
  /** Those that were bound a moment ago: what the broker has sent first may be on its way. */
  readonly #fresh = new Set<TurnTaker>();
  /** Those that wait for their turn, and since when. */
  readonly #closedAtMs = new Map<TurnTaker, number>();
  /** Runs while the room is crowded. */
  #patience: NodeJS.Timeout | undefined;
  #isBusy = false;

  constructor(room: Room, clock: Clock, ended: AbortSignal) {
    this.#room = room;
    this.#clock = clock;
    this.#ended = ended;
  }

  /** Has a queue take its turns, until the returned object is disposed. */
  join(taker: TurnTaker): Disposable {
    const seat = this.#room.join({
      onCrowded: () => this.#begin(),
      // Who has room is told by `regulate`, in the order of the turns.
      onRoom: () => {},
    });
    this.#takers.set(taker, seat);
    return {
      [Symbol.dispose]: () => {
        if (!this.#takers.delete(taker)) return;
        this.#closedAtMs.delete(taker);
        seat[Symbol.dispose]();
        this.#looks.get(taker)?.over.abort();
      },
    };
  }

  /** A queue was bound to. Never rejects. */
  async bound(taker: TurnTaker): Promise<void> {
    this.#fresh.add(taker);
    this.regulate();
    await this.#clock.sleep(firstWithinMs, this.#ended).catch(() => {});
    this.#fresh.delete(taker);
    this.regulate();
  }

  /** A call of a queue came, and is held. */
  took(taker: TurnTaker): void {
    this.#room.add();
    this.#endLook(taker, this.#looks.get(taker));
    this.regulate();
  }

  /** Calls are held no more. */
  done(calls = 1): void {
    for (let call = 0; call < calls; call++) this.#room.remove();
    if (!this.#room.isCrowded) {
      clearTimeout(this.#patience);
      this.#patience = undefined;
      this.#isBusy = false;
    }
    this.regulate();
  }

  /** Gives the room that there is to the queues, in the order of their turns. To be called when one of them has changed. */
  regulate(): void {
    for (const taker of this.#inOrder) {
      if (taker.isParked) this.#look(taker);
      else this.#open(taker);
    }
    if (!this.#room.isShared) return;
    for (const taker of this.#inOrder) {
      if (!this.#mayPark(taker)) continue;
      this.#closedAtMs.delete(taker);
      taker.park();
    }
  }

  #mayPark(taker: TurnTaker): boolean {
    if (taker.isParked || this.#looks.has(taker) || this.#fresh.has(taker)) return false;
    const closedAtMs = this.#closedAtMs.get(taker) ?? Infinity;
    return this.#isBusy || this.#clock.monotonicMs() - closedAtMs >= waitsForMs;
  }

  /** The room is crowded. */
  #begin(): void {
    const park = (): void => {
      this.#isBusy = true;
      this.regulate();
    };
    this.#patience ??= setTimeout(park, busyForMs).unref();
  }

  get #inOrder(): readonly TurnTaker[] {
    return [...this.#takers.keys()];
  }

  /** Opening a flow may bring a call: whoever comes next has what room is left. */
  #open(taker: TurnTaker): void {
    if (this.#mayTake(taker)) this.#closedAtMs.delete(taker);
    for (const flow of taker.flows) flow.setOpen(this.#mayTake(taker));
    if (!this.#mayTake(taker) && !this.#closedAtMs.has(taker)) {
      this.#closedAtMs.set(taker, this.#clock.monotonicMs());
    }
  }

  #mayTake(taker: TurnTaker): boolean {
    return this.#room.free > 0 || this.#looks.has(taker);
  }

  /**
   * One place at most is kept for a call that may not be there, unless there is another one for the queues that are bound:
   * the tools that are called should not wait for those that are not.
   */
  #look(taker: TurnTaker): void {
    if (this.#looks.has(taker) || (this.#looks.size > 0 && this.#room.free < 2)) return;
    const place = this.#room.tryReserve();
    if (place === undefined) return;
    const look = { place, over: new AbortController() };
    this.#looks.set(taker, look);
    void this.#seeThrough(taker, look);
  }

  /** Never rejects. */
  async #seeThrough(taker: TurnTaker, look: Look): Promise<void> {
    const over = AbortSignal.any([look.over.signal, this.#ended]);
    const beganAtMs = this.#clock.monotonicMs();
    try {
      const isBound = await Promise.race([taker.resume(), this.#clock.sleep(bindMs, over)]);
      const tookMs = this.#clock.monotonicMs() - beganAtMs;
      const waitMs = Math.min(Math.max(tookMs, firstNotBeforeMs), firstWithinMs);
      if (isBound === true) await this.#clock.sleep(waitMs, over);
      // What the socket has is read first.
      await setImmediate();
    } catch {
      // A call came, or none is wanted any more.
    }
    if (!this.#endLook(taker, look)) return;
    // Calls that wait in hand come before another look.
    for (const other of this.#inOrder) if (!other.isParked) this.#open(other);
    this.regulate();
  }

  /** Gives the place of a look back, and has the queue wait for its next turn. Whether that was to be done. */
  #endLook(taker: TurnTaker, look: Look | undefined): boolean {
    this.#moveBack(taker);
    if (look === undefined || this.#looks.get(taker) !== look) return false;
    this.#looks.delete(taker);
    look.place[Symbol.dispose]();
    look.over.abort();
    return true;
  }

  #moveBack(taker: TurnTaker): void {
    const seat = this.#takers.get(taker);
    if (seat === undefined) return;
    this.#takers.delete(taker);
    this.#takers.set(taker, seat);
  }
}
