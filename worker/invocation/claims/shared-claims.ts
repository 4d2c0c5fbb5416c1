/**
 * Claims as marks in the store that the workers of a group share. The mark of a run is touched as
 * long as its worker lives.
 *
 * The first run of a repeatable call has a mark only when its connection is lost, so that the usual
 * call costs nothing. docs/adr/0004 has the reasons.
 */
import type { MarkStore } from "../../artifacts/marks.ts";
import { StoreError } from "../../artifacts/store.ts";
import type { BrokerSession, Delivery } from "../../broker/broker.ts";
import { abortable } from "../../support/within.ts";
import { storeIdMark } from "../../artifacts/marks.ts";
import { logEvent } from "../../telemetry/log-event.ts";
import { noteEnding } from "./call-marks.ts";
import { type Claims, guessedClaims } from "./claims.ts";
import type { RunningEntry } from "./ledger.ts";
import {
  type ClaimContext,
  SharedClaim,
  type SharedClaimsParts,
  settlingMs,
} from "./shared-claim.ts";

/** Milliseconds between two looks at the own runs. */
const defaultRefreshMs = 250;
/** A tick that comes so much later, in milliseconds, means that this process stood still. */
export const stallMs = 5_000;
/** Milliseconds that marks are kept: an outage of a weekend. */
export const markLifetimeMs = 72 * 60 * 60_000;
/** Milliseconds that notes are kept: calls are younger when a replay is not too late for them. */
export const noteLifetimeMs = 2 * 60 * 60_000;
/** Milliseconds from the start to the first sweep, and between two. */
export const sweepMs = 60 * 60_000;
/** Milliseconds for one operation on marks. */
const operationMs = 10_000;

/**
 * Claims by what the workers of the group share. Without shared marks, or other workers, they are
 * guesses. The caller owns them.
 */
export function openClaims(
  marks: MarkStore | undefined,
  { redelivers, mayReplay = false }: Pick<BrokerSession, "redelivers" | "mayReplay">,
  { clock, log }: Pick<SharedClaimsParts, "clock" | "log">,
): Claims {
  if (marks === undefined || !redelivers) return guessedClaims;
  return new SharedClaims({ marks, mayReplay, clock, log });
}

/** The claims of one worker. */
export class SharedClaims implements Claims, ClaimContext {
  readonly parts: SharedClaimsParts;
  /** The claims whose runs are looked at, until they are disposed. */
  readonly started = new Set<SharedClaim>();
  readonly #timer: NodeJS.Timeout;
  readonly #stopped = new AbortController();
  readonly #pending = new Set<Promise<void>>();
  #refreshedMs: number;
  #sweptMs: number;
  #stableAtMs = -Infinity;

  constructor(parts: SharedClaimsParts) {
    this.parts = parts;
    this.#refreshedMs = parts.clock.monotonicMs();
    this.#sweptMs = this.#refreshedMs;
    this.#timer = setInterval(() => this.refresh(), parts.refreshMs ?? defaultRefreshMs).unref();
  }

  open(
    key: string,
    delivery: Delivery,
    entry: Pick<RunningEntry, "isLost" | "cameAgain">,
  ): SharedClaim {
    return new SharedClaim(this, Buffer.from(key, "base64").toString("hex"), delivery, entry);
  }

  /** Looks at the own runs, and at the clock. */
  refresh(): void {
    const nowMs = this.parts.clock.monotonicMs();
    const pausedMs = nowMs - this.#refreshedMs;
    if (pausedMs > stallMs) {
      this.#stableAtMs = nowMs + settlingMs;
      for (const claim of this.started) claim.extend(pausedMs);
    }
    this.#refreshedMs = nowMs;
    for (const claim of this.started) void claim.refresh(nowMs);
    if (nowMs - this.#sweptMs < sweepMs) return;
    this.#sweptMs = nowMs;
    void this.logFailure(() => this.parts.marks.sweep(lifetimeMs, this.#stopped.signal));
  }

  /**
   * After this process stood still: waits until a connection that was lost meanwhile says so.
   * Resolves to whether it waited.
   */
  async awaitStable(signal: AbortSignal): Promise<boolean> {
    const { clock } = this.parts;
    // What waits for the disk wakes before a timer does.
    if (clock.monotonicMs() - this.#refreshedMs > stallMs) this.refresh();
    const leftMs = this.#stableAtMs - clock.monotonicMs();
    if (leftMs <= 0) return false;
    await clock.sleep(leftMs, signal);
    return true;
  }

  /** One operation on marks. A store that hangs must not hold a call for ever. */
  readonly use = async <T>(
    operation: (marks: MarkStore, signal: AbortSignal) => Promise<T>,
    signal?: AbortSignal,
  ): Promise<T> => {
    const limit = AbortSignal.timeout(operationMs);
    const either = signal === undefined ? limit : AbortSignal.any([signal, limit]);
    try {
      return await abortable(operation(this.parts.marks, either), either);
    } catch (error) {
      signal?.throwIfAborted();
      if (!limit.aborted) throw error;
      const message = "A mark of the call could not be kept: the artifact store does not answer.";
      throw new StoreError("unavailable", message, { cause: error });
    }
  };

  /** Runs an operation whose failure changes nothing for the call. */
  logFailure(operation: () => Promise<unknown>): Promise<void> {
    const kept = operation().then(
      () => undefined,
      (error: unknown) => {
        if (this.#stopped.signal.aborted) return;
        logEvent(this.parts.log, "mark.write_failed", { err: error });
      },
    );
    this.#pending.add(kept);
    return kept.finally(() => this.#pending.delete(kept));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer);
    this.#stopped.abort();
    await Promise.all(this.#pending);
  }
}

function lifetimeMs(markName: string): number {
  if (markName === storeIdMark) return Infinity;
  return markName.endsWith(noteEnding) ? noteLifetimeMs : markLifetimeMs;
}
