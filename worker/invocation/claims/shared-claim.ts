/**
 * The claim of one call, by marks in the store that the workers of a group share.
 */
import type { MarkStore } from "../../artifacts/marks.ts";
import type { Delivery } from "../../broker/broker.ts";
import type { Clock } from "../../support/clock.ts";
import { logEvent } from "../../telemetry/log-event.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { CallMarks, type MarkedState, type UseMarks } from "./call-marks.ts";
import { OvertakenError } from "../answers.ts";
import { type CallClaim, type CallHistory, NotStartedError } from "./claims.ts";
import type { RunningEntry } from "./ledger.ts";
import { isRedelivery, mayHaveStarted } from "./redelivery.ts";

/**
 * Milliseconds before reading the marks of a redelivered call, with up to as much jitter. Meanwhile
 * its former worker notices the lost connection and marks the run.
 */
export const settlingMs = 1_000;
/** Milliseconds between polls of another worker's mark. */
export const pollMs = 500;
/** Age in milliseconds, by the store's clock, at which a mark belongs to a dead worker. */
export const goneMs = 10_000;
/**
 * Milliseconds of polling without a touch, required besides the age: clocks jump, and workers
 * stall together. More than {@link touchMs}.
 */
export const quietEnoughMs = 4_000;
/** Milliseconds between heartbeats of a mark. */
export const touchMs = 3_000;
/** Milliseconds of heartbeats for a finished run whose answer waits for the broker. */
export const unpublishedMs = 60_000;

/** Dependencies of claims. */
export interface SharedClaimsParts {
  readonly marks: MarkStore;
  /** Whether the broker may replay an answered call to any worker. */
  readonly mayReplay?: boolean;
  readonly clock: Clock;
  readonly log: Logger;
  /** Milliseconds between checks for due heartbeats. */
  readonly refreshMs?: number;
}

/** The worker's part that its claims use. */
export interface ClaimContext {
  readonly parts: SharedClaimsParts;
  /** Claims with a heartbeat. */
  readonly started: Set<SharedClaim>;
  /** After a stall: waits until a lost connection would show. Resolves to whether it waited. */
  awaitStable(signal: AbortSignal): Promise<boolean>;
  readonly use: UseMarks;
  /** Runs an operation and logs its failure. */
  logFailure(operation: () => Promise<unknown>): Promise<void>;
}

export class SharedClaim implements CallClaim {
  readonly isCertain = true;
  isSuperseded = false;
  readonly #claims: ClaimContext;
  readonly #marks: CallMarks;
  /** Whether the delivery may be a replay. */
  readonly #mayBeReplayed: boolean;
  readonly #entry: Pick<RunningEntry, "isLost" | "cameAgain">;
  /** Whether another worker may know of the call. */
  #isContested: boolean;
  #isRepeatable = false;
  /** Of other workers. */
  #runs = 0;
  /** This worker's run, if marked. */
  #ownRun: number | undefined;
  #touchedMs = -Infinity;
  #aliveUntilMs = Infinity;
  /** Whether an answer waits for the broker. */
  #isPublishing = false;
  /** That answer, until it is handed over. */
  #unpublished: Uint8Array | undefined;
  /** Whether other workers may publish the answer. */
  #isHandedOver = false;
  readonly #overtaken = new AbortController();
  #refreshing: Promise<void> | undefined;
  #keeping: Promise<void> | undefined;

  constructor(
    claims: ClaimContext,
    call: string,
    delivery: Delivery,
    entry: Pick<RunningEntry, "isLost" | "cameAgain">,
  ) {
    this.#claims = claims;
    this.#marks = new CallMarks(call, claims.use);
    this.#entry = entry;
    this.#isContested = mayHaveStarted(delivery);
    const { mayReplay = false } = claims.parts;
    this.#mayBeReplayed = mayReplay && isRedelivery(delivery);
  }

  async history(signal: AbortSignal, isUrgent: boolean): Promise<CallHistory> {
    if (!this.#isContested) return { kind: "open", runs: 0, mayHaveStarted: false };
    const { clock } = this.#claims.parts;
    const pauseMs = this.isSuperseded ? pollMs : settlingMs * (1 + Math.random());
    this.isSuperseded = false;
    if (!isUrgent) await clock.sleep(pauseMs, signal);
    let [seen, quietMs, polledMs] = ["", 0, clock.monotonicMs()];
    for (;;) {
      this.#requireDelivery();
      const found = await this.#poll(signal);
      if (found.kind === "answered") return found;
      if (found.kind === "unpublished") {
        // Its worker may reconnect and publish the answer itself.
        const { kind, answer } = found;
        if (isUrgent || found.ageMs >= goneMs) return { kind, answer };
        await clock.sleep(pollMs, signal);
        continue;
      }
      const { runs } = found;
      if (found.stamp === undefined) return { kind: "open", runs, mayHaveStarted: false };
      // A stall of this process is no silence of the other worker.
      const nowMs = clock.monotonicMs();
      const now = `${runs} ${found.stamp}`;
      quietMs = now === seen ? quietMs + Math.min(nowMs - polledMs, 2 * pollMs) : 0;
      [seen, polledMs] = [now, nowMs];
      const isGone = quietMs >= quietEnoughMs && found.ageMs >= goneMs;
      if (isUrgent || isGone) return { kind: "open", runs, mayHaveStarted: true };
      await clock.sleep(pollMs, signal);
    }
  }

  async begin(isRepeatable: boolean, signal: AbortSignal): Promise<void> {
    this.#isRepeatable = isRepeatable;
    await this.#claims.awaitStable(signal);
    this.#requireDelivery();
    // Another worker may have received the call while it waited for a slot.
    if (!this.#isContested && this.#entry.cameAgain()) this.#supersede();
    if (this.#isContested || !isRepeatable) {
      await this.#create();
      await this.#confirmMark(signal);
    }
    this.#claims.started.add(this);
  }

  async keep(): Promise<void> {
    this.#isRepeatable = false;
    await this.#refreshing;
    if (this.#ownRun !== undefined) return;
    this.#keeping ??= this.#create().finally(() => (this.#keeping = undefined));
    await this.#keeping;
  }

  get overtaken(): AbortSignal {
    return this.#overtaken.signal;
  }

  async isAnswered(payload: Uint8Array | undefined): Promise<boolean> {
    const { clock } = this.#claims.parts;
    [this.#isPublishing, this.#unpublished] = [true, payload];
    if (this.#entry.isLost()) this.#touchedMs = -Infinity;
    this.#aliveUntilMs = clock.monotonicMs() + unpublishedMs;
    // An answer may wait for the next connection, also that of a call which did not start.
    if (payload !== undefined) this.#claims.started.add(this);
    if (this.#claims.started.has(this)) await this.refresh(clock.monotonicMs());
    if (this.#ownRun === undefined && !this.#isContested) return false;
    let answer: Uint8Array | undefined;
    await this.#claims.logFailure(async () => (answer = await this.#marks.answer()));
    return answer !== undefined;
  }

  async answered(payload: Uint8Array): Promise<void> {
    [this.#isPublishing, this.#unpublished] = [false, undefined];
    if (this.#ownRun !== undefined || this.#isContested || this.#entry.isLost()) {
      await this.#claims.logFailure(() => this.#marks.keepAnswer(payload));
    } else if (this.#claims.parts.mayReplay === true) {
      // Cheaper than a mark with the answer: replays are rare.
      await this.#claims.logFailure(() => this.#marks.note());
    }
  }

  async release(): Promise<void> {
    this.#claims.started.delete(this);
    await this.#refreshing;
    this.#isPublishing = false;
    if (!this.#isHandedOver) await this.#claims.logFailure(() => this.#handOver());
    if (this.#isRepeatable && !this.#isHandedOver) await this.#removeMark();
  }

  /** Extends the heartbeats of a waiting answer by a stall of this process. */
  extend(pausedMs: number): void {
    this.#aliveUntilMs += pausedMs;
  }

  /**
   * Touches the run's mark, or creates it after the connection is lost. Hands over an answer that
   * waits for the broker, or cancels it after another worker's answer. Never rejects.
   */
  refresh(nowMs: number): Promise<void> {
    this.#refreshing ??= this.#claims
      .logFailure(() => this.#keepAlive(nowMs))
      .finally(() => (this.#refreshing = undefined));
    return this.#refreshing;
  }

  [Symbol.dispose](): void {
    this.#claims.started.delete(this);
  }

  async #keepAlive(nowMs: number): Promise<void> {
    if (nowMs - this.#touchedMs < touchMs) return;
    const isLost = this.#entry.isLost();
    if (this.#isPublishing && isLost) {
      this.#touchedMs = nowMs;
      if ((await this.#marks.answer()) !== undefined) {
        return this.#overtaken.abort(new OvertakenError());
      }
      if (this.#isHandedOver || (await this.#handOver())) return;
    }
    if (nowMs > this.#aliveUntilMs) return;
    if (this.#ownRun !== undefined) {
      this.#touchedMs = nowMs;
      await this.#marks.touch(this.#ownRun);
    } else if (!this.#isContested && isLost) {
      // One attempt: a worker that marked the run first runs the call, too.
      this.#isContested = true;
      if (await this.#marks.begin(1)) [this.#ownRun, this.#touchedMs] = [1, nowMs];
    }
  }

  /** Resolves to whether other workers may publish the answer. */
  async #handOver(): Promise<boolean> {
    if (this.#unpublished === undefined) return false;
    this.#isHandedOver = await this.#marks.keepUnpublished(this.#unpublished);
    this.#unpublished = undefined;
    if (this.#isHandedOver) this.#isContested = true;
    return this.#isHandedOver;
  }

  /** Ignores the signal: an aborted attempt might leave a mark unnoticed. */
  async #create(): Promise<void> {
    const { clock, log } = this.#claims.parts;
    const run = this.#runs + 1;
    let isOwn: boolean;
    try {
      isOwn = await this.#marks.begin(run);
    } catch (error) {
      if (!this.#isRepeatable) throw error;
      logEvent(log, "mark.write_failed", { err: error });
      return;
    }
    if (!isOwn) this.#supersede();
    this.#ownRun = run;
    this.#touchedMs = clock.monotonicMs();
  }

  /** Removes the mark of a run that cannot start after a stall on the disk. */
  async #confirmMark(signal: AbortSignal): Promise<void> {
    try {
      if (await this.#claims.awaitStable(signal)) this.#requireDelivery();
      signal.throwIfAborted();
    } catch (error) {
      await this.#removeMark();
      throw error;
    }
  }

  async #removeMark(): Promise<void> {
    const run = this.#ownRun;
    if (run === undefined) return;
    this.#ownRun = undefined;
    await this.#claims.logFailure(() => this.#marks.forget(run));
  }

  /** Reads the marks. An unreadable mark counts as a run without an end. */
  async #poll(signal: AbortSignal): Promise<MarkedState> {
    try {
      const state = await this.#marks.state(signal, this.#mayBeReplayed);
      if (state.kind === "open") this.#runs = state.runs;
      return state;
    } catch (error) {
      signal.throwIfAborted();
      logEvent(this.#claims.parts.log, "mark.read_failed", { err: error });
      return { kind: "open", runs: this.#runs, stamp: "unknown", ageMs: Infinity };
    }
  }

  #supersede(): never {
    this.isSuperseded = true;
    this.#isContested = true;
    throw new NotStartedError("another worker may run the call");
  }

  #requireDelivery(): void {
    if (this.#entry.isLost()) throw new NotStartedError("the connection of the call is lost");
  }
}
