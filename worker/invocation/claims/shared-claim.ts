/**
 * One call that this worker handles, by the marks that the workers of its group share.
 */
import type { MarkStore } from "../../artifacts/marks.ts";
import type { Delivery } from "../../broker/broker.ts";
import type { Clock } from "../../support/clock.ts";
import { logEvent } from "../../telemetry/log-event.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { CallMarks, type UseMarks } from "./call-marks.ts";
import { OvertakenError } from "../answers.ts";
import { type CallClaim, type CallHistory, NotStartedError } from "./claims.ts";
import type { RunningEntry } from "./ledger.ts";
import { isRedelivery, mayHaveStarted } from "./redelivery.ts";

/**
 * Milliseconds before the marks of a call that came again are read, and as many more by chance: its
 * former worker notices the loss and marks the run, and this connection proves itself.
 */
export const settlingMs = 1_000;
/** Milliseconds between two looks at a run of another worker. */
export const pollMs = 500;
/**
 * Milliseconds without a touch after which a mark is one of a dead worker, by the store's clock.
 */
export const goneMs = 10_000;
/**
 * Milliseconds of looks without a touch, which it takes besides: more than between two touches,
 * since clocks jump, and workers stand still together.
 */
export const quietEnoughMs = 4_000;
/** Milliseconds between two touches. */
export const touchMs = 3_000;
/**
 * Milliseconds after its end for which a run is kept alive while its answer waits for the broker.
 */
export const unpublishedMs = 60_000;

const nothing = new Uint8Array();

/** What claims work with. */
export interface SharedClaimsParts {
  readonly marks: MarkStore;
  /** Whether the broker may deliver an answered call again, to any worker. */
  readonly mayReplay?: boolean;
  readonly clock: Clock;
  readonly log: Logger;
  /** Milliseconds between two looks at the own runs. */
  readonly refreshMs?: number;
}

/** The part of a worker's claims that each of them uses. */
export interface ClaimContext {
  readonly parts: SharedClaimsParts;
  /** The claims whose runs are looked at. */
  readonly started: Set<SharedClaim>;
  /** Waits after a stall of this process. Resolves to whether it waited. */
  awaitStable(signal: AbortSignal): Promise<boolean>;
  readonly use: UseMarks;
  /** Runs an operation whose failure is only logged. */
  logFailure(operation: () => Promise<unknown>): Promise<void>;
}

/** The claim of a call; see {@link CallClaim}. */
export class SharedClaim implements CallClaim {
  readonly isCertain = true;
  isSuperseded = false;
  readonly #claims: ClaimContext;
  readonly #marks: CallMarks;
  /** Whether a replay may have brought the call. */
  readonly #mayBeReplayed: boolean;
  readonly #entry: Pick<RunningEntry, "isLost" | "cameAgain">;
  /** Whether another worker may know of the call. */
  #isContested: boolean;
  #isRepeatable = false;
  /** By others. */
  #runs = 0;
  /** The own run that has a mark. */
  #ownRun: number | undefined;
  #touchedMs = -Infinity;
  #aliveUntilMs = Infinity;
  /** Whether an answer waits for the broker. */
  #isPublishing = false;
  /** That answer, as long as it can be left to another worker. */
  #unpublished: Uint8Array | undefined;
  /** Whether others may publish the answer. */
  #isHandedOver = false;
  readonly #overtaken = new AbortController();
  #refreshing: Promise<void> | undefined;

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
      const found = await this.#find(signal);
      if (found.kind === "answered") return found;
      if (found.kind === "unpublished") {
        // Its worker may be back in a moment, and publish the answer itself.
        const { kind, answer } = found;
        if (isUrgent || found.ageMs >= goneMs) return { kind, answer };
        await clock.sleep(pollMs, signal);
        continue;
      }
      const { runs } = found;
      if (found.stamp === undefined) return { kind: "open", runs, mayHaveStarted: false };
      // Time in which nothing was looked at says nothing of the other worker.
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
    // Another worker may have had it while it waited here.
    if (!this.#isContested && this.#entry.cameAgain()) this.#supersede();
    if (this.#isContested || !isRepeatable) {
      await this.#create();
      await this.#confirmMark(signal);
    }
    this.#claims.started.add(this);
  }

  get overtaken(): AbortSignal {
    return this.#overtaken.signal;
  }

  async isAnswered(payload: Uint8Array | undefined): Promise<boolean> {
    const { clock } = this.#claims.parts;
    [this.#isPublishing, this.#unpublished] = [true, payload];
    if (this.#entry.isLost()) this.#touchedMs = -Infinity;
    this.#aliveUntilMs = clock.monotonicMs() + unpublishedMs;
    // A connection that was lost just before the end: the answer waits for the next one.
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
      // Costs less than a mark with the answer: the call may run again, and replays are rare.
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

  /** Keeps an answer that waits for the broker alive so much longer: this process stood still. */
  extend(pausedMs: number): void {
    this.#aliveUntilMs += pausedMs;
  }

  /**
   * Touches the mark of the own run, or makes one when the broker hands the call to others. Leaves
   * them an answer that waits for the broker, and gives it up when they have answered. Never
   * rejects.
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
      // Made once: a worker that was faster runs the call, too.
      this.#isContested = true;
      if (await this.#marks.begin(1)) [this.#ownRun, this.#touchedMs] = [1, nowMs];
    }
  }

  /** Resolves to whether others may publish the answer from now on. */
  async #handOver(): Promise<boolean> {
    if (this.#unpublished === undefined) return false;
    this.#isHandedOver = await this.#marks.keepUnpublished(this.#unpublished);
    this.#unpublished = undefined;
    if (this.#isHandedOver) this.#isContested = true;
    return this.#isHandedOver;
  }

  /** Is not broken off: whoever leaves a mark behind has to know of it. */
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

  /** The disk may have held this process up; a run that does not begin then leaves no mark. */
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

  /** What is there now; what cannot be read is a run without an end. */
  async #find(signal: AbortSignal): Promise<
    | {
        readonly kind: "open";
        readonly runs: number;
        readonly stamp: string | undefined;
        readonly ageMs: number;
      }
    | { readonly kind: "unpublished"; readonly answer: Uint8Array; readonly ageMs: number }
    | Extract<CallHistory, { kind: "answered" }>
  > {
    try {
      const answer = await this.#marks.answer(signal);
      if (answer !== undefined) return answered(answer);
      if (this.#mayBeReplayed && (await this.#marks.isNoted(signal))) return answered(nothing);
      const unpublished = await this.#marks.unpublished(signal);
      if (unpublished !== undefined) {
        const { content, ageMs } = unpublished;
        return { kind: "unpublished", answer: content, ageMs };
      }
      const { runs, last } = await this.#marks.runs(signal);
      this.#runs = runs;
      return { kind: "open", runs, stamp: last?.stamp, ageMs: last?.ageMs ?? 0 };
    } catch (error) {
      signal.throwIfAborted();
      logEvent(this.#claims.parts.log, "mark.read_failed", { err: error });
      return { kind: "open", runs: this.#runs, stamp: "unknown", ageMs: Infinity };
    }
  }

  /** Has the history read again. */
  #supersede(): never {
    this.isSuperseded = true;
    this.#isContested = true;
    throw new NotStartedError("another worker may run the call");
  }

  #requireDelivery(): void {
    if (this.#entry.isLost()) throw new NotStartedError("the connection of the call is lost");
  }
}

function answered(answer: Uint8Array): Extract<CallHistory, { kind: "answered" }> {
  return { kind: "answered", answer: answer.byteLength === 0 ? undefined : answer };
}
