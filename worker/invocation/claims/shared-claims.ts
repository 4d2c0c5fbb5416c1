/**
 * Claims as marks in the store that the workers of a group share, with a heartbeat per run.
 *
 * The first run of a repeatable call gets a mark only after its connection is lost, or before it
 * calls a tool that must not run twice, so that the usual call costs nothing. docs/adr/0004 has the
 * reasons.
 */
import type { MarkStore } from "../../artifacts/marks.ts";
import { StoreError } from "../../artifacts/store.ts";
import type { BrokerSession, Delivery } from "../../broker/broker.ts";
import { abortable } from "../../support/timeout.ts";
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

/** Milliseconds between checks for due heartbeats. */
const defaultRefreshMs = 250;
/** Milliseconds between checks that mean a stall of this process. */
export const stallMs = 5_000;
/** Lifetime of marks in milliseconds: an outage of a weekend. */
export const markLifetimeMs = 72 * 60 * 60_000;
/** Lifetime of notes in milliseconds: older calls are past their deadline in a replay. */
export const noteLifetimeMs = 2 * 60 * 60_000;
/** Milliseconds before the first sweep, and between sweeps. */
export const sweepMs = 60 * 60_000;
/** Milliseconds for one operation on marks. */
const operationMs = 10_000;

/** Shared claims; guessed ones without a shared store or redelivery. The caller owns them. */
export function openClaims(
  marks: MarkStore | undefined,
  { redelivers, mayReplay = false }: Pick<BrokerSession, "redelivers" | "mayReplay">,
  { clock, log }: Pick<SharedClaimsParts, "clock" | "log">,
): Claims {
  if (marks === undefined || !redelivers) return guessedClaims;
  return new SharedClaims({ marks, mayReplay, clock, log });
}

export class SharedClaims implements Claims, ClaimContext {
  readonly parts: SharedClaimsParts;
  /** Claims with a heartbeat, until their disposal. */
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

  /** Detects stalls, sends due heartbeats and sweeps. */
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

  /** After a stall: waits until a lost connection would show. Resolves to whether it waited. */
  async awaitStable(signal: AbortSignal): Promise<boolean> {
    const { clock } = this.parts;
    // Disk callbacks run before the timer does.
    if (clock.monotonicMs() - this.#refreshedMs > stallMs) this.refresh();
    const leftMs = this.#stableAtMs - clock.monotonicMs();
    if (leftMs <= 0) return false;
    await clock.sleep(leftMs, signal);
    return true;
  }

  /** Bounds one operation on marks, so that a hanging store does not block a call. */
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

  /** Runs an operation whose failure does not change the call; logs the failure. */
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
