/**
 * Removes environments that no tool of a live worker on this host uses.
 */
import { maxTimeoutSeconds } from "../protocol/limits.ts";
import type { Clock } from "../support/clock.ts";
import { type EventLog, logEvent } from "../telemetry/log-event.ts";
import type { EnvironmentStore, StoredEnvironment } from "./store.ts";

/** Milliseconds between two rounds. */
const roundMs = 3_600_000;
/** Milliseconds from the start to the first round: by then the worker has marked what it uses. */
const firstRoundMs = 60_000;
/** Milliseconds for which calls that began before a change may use the former environment. */
const lingerMs = maxTimeoutSeconds * 1000;

/** What is removed, and when. */
export interface UpkeepOptions {
  readonly store: EnvironmentStore;
  readonly clock: Clock;
  /** Milliseconds that an unused environment is kept. */
  readonly keepMs: number;
  /** Bytes of all environments, above which unused ones go, those unused for longest first. */
  readonly maxBytes: number;
  readonly log: EventLog<"info" | "warn">;
  /** Keys that tools of this worker use now. */
  inForce(): Iterable<string>;
}

/** The upkeep of one worker. */
export class Upkeep {
  readonly #options: UpkeepOptions;
  /** When each key of this worker was last in force, on the monotonic clock. */
  readonly #lastInForceMs = new Map<string, number>();

  constructor(options: UpkeepOptions) {
    this.#options = options;
  }

  /** Runs rounds until the signal aborts, and rejects with its reason. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#options;
    for (let pauseMs = firstRoundMs; ; pauseMs = roundMs) {
      await clock.sleep(pauseMs, signal);
      await this.round(signal).catch((error: unknown) => {
        signal.throwIfAborted();
        logEvent(log, "packages.upkeep_failed", { err: error });
      });
    }
  }

  /** Marks what is in use, and removes what is not. */
  async round(signal: AbortSignal): Promise<void> {
    await this.#renewMarks();
    const { store, log } = this.#options;
    await store.removeDamaged(signal);
    const removed: StoredEnvironment[] = [];
    for (const one of await this.#excess())
      if (await store.remove(one.key, signal)) removed.push(one);
    if (removed.length === 0) return;
    const freedBytes = removed.reduce((sum, { facts }) => sum + facts.sizeBytes, 0);
    logEvent(log, "packages.removed", { keys: removed.map(({ key }) => key), freedBytes });
  }

  async #renewMarks(): Promise<void> {
    const { store, clock, inForce } = this.#options;
    const nowMs = clock.monotonicMs();
    for (const key of inForce()) this.#lastInForceMs.set(key, nowMs);
    // Those that came and went since the last round.
    for (const key of await store.ownKeys())
      if (!this.#lastInForceMs.has(key)) this.#lastInForceMs.set(key, nowMs);
    for (const [key, lastMs] of this.#lastInForceMs) {
      if (nowMs - lastMs <= lingerMs) {
        await store.use(key);
      } else {
        this.#lastInForceMs.delete(key);
        await store.release(key);
      }
    }
  }

  /** Unused environments that are too old, or too much. */
  async #excess(): Promise<readonly StoredEnvironment[]> {
    const { store, clock, keepMs, maxBytes } = this.#options;
    const all = await store.list();
    const inUse = await store.keysInUse();
    let bytes = all.reduce((sum, { facts }) => sum + facts.sizeBytes, 0);
    return all.filter(({ key, usedAtMs, facts }) => {
      if (inUse.has(key)) return false;
      const isOld = clock.nowMs() - usedAtMs > keepMs;
      if (!isOld && bytes <= maxBytes) return false;
      bytes -= facts.sizeBytes;
      return true;
    });
  }
}
