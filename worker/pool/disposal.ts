/**
 * Disposes resources in the background.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Clock } from "../support/clock.ts";
import { after } from "../support/timeout.ts";
import { type EventLog, logEvent } from "../telemetry/log-event.ts";
import type { CallSeries } from "./call-series.ts";

/** Ended calls whose disposal waits for the end of a series. Beyond that the oldest starts. */
export const maxHeld = 32;
/** Milliseconds after which one starts at the next look, though the series goes on. */
export const maxHeldMs = 100;

/** What disposals are started with. */
export interface DisposalOptions {
  readonly log: EventLog<"warn">;
  readonly clock: Clock;
  /** Calls that disposals leave the processors to. */
  readonly series: Pick<CallSeries, "isUnderWay" | "endsAtMs">;
}

interface Held {
  /** On the monotonic clock. */
  readonly sinceMs: number;
  readonly start: () => void;
}

/** The disposals under way. */
export class Disposal {
  readonly #options: DisposalOptions;
  readonly #pending = new Set<Promise<void>>();
  /** Those that wait for the end of a series, the oldest first. */
  readonly #held: Held[] = [];
  #timer: Disposable | undefined;
  #isClosing = false;

  constructor(options: DisposalOptions) {
    this.#options = options;
  }

  /** Disposes the resource from the next turn on: answers go first. Logs an error. */
  begin(resource: AsyncDisposable): void {
    this.#begin(resource, () => nextTurn());
  }

  /** The same for a sandbox in which nothing runs any more, at the end of a series of calls. */
  beginAfterSeries(resource: AsyncDisposable): void {
    this.#begin(resource, () => this.#turn());
  }

  #begin(resource: AsyncDisposable, turn: () => Promise<void>): void {
    const disposing = this.#dispose(resource, turn);
    this.#pending.add(disposing);
    void disposing.then(() => this.#pending.delete(disposing));
  }

  /** Fulfils when no disposal is under way. None waits for a series from now on. */
  async settled(): Promise<void> {
    this.#isClosing = true;
    this.#timer?.[Symbol.dispose]();
    await this.#startHeld();
    while (this.#pending.size > 0) await Promise.all(this.#pending);
  }

  async #dispose(resource: AsyncDisposable, turn: () => Promise<void>): Promise<void> {
    await turn();
    try {
      await resource[Symbol.asyncDispose]();
    } catch (error) {
      logEvent(this.#options.log, "sandbox.dispose_failed", { err: error });
    }
  }

  async #turn(): Promise<void> {
    await nextTurn();
    if (this.#waits) await this.#hold();
  }

  get #waits(): boolean {
    return this.#options.series.isUnderWay && !this.#isClosing;
  }

  #hold(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#held.push({ sinceMs: this.#options.clock.monotonicMs(), start: resolve });
    if (this.#held.length > maxHeld) this.#held.shift()?.start();
    this.#timer ??= this.#lookLater();
    return promise;
  }

  #lookLater(): Disposable {
    const { clock, series } = this.#options;
    const leftMs = Math.max(0, series.endsAtMs - clock.monotonicMs());
    return after(leftMs, clock, () => void this.#startHeld());
  }

  async #startHeld(): Promise<void> {
    for (let [oldest] = this.#held; oldest !== undefined; [oldest] = this.#held) {
      const heldMs = this.#options.clock.monotonicMs() - oldest.sinceMs;
      if (this.#waits && heldMs < maxHeldMs) {
        this.#timer = this.#lookLater();
        return;
      }
      this.#held.shift();
      oldest.start();
      // One in a turn: calls that arrive meanwhile do not wait for all.
      await nextTurn();
    }
    this.#timer = undefined;
  }
}
