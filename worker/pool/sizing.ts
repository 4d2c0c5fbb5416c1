/**
 * How many sandboxes of a tool should wait for calls: what its calls say, and what all tools
 * together may take. Pure.
 */
import type { WarmBounds } from "../manifest/manifest.ts";
import { maxWarm } from "../manifest/warm-field.ts";

/**
 * Calls that come within so many milliseconds count as one burst, also where a refill takes less.
 */
export const burstMs = 100;
/** So many times the largest burst are kept ready, since the next may be larger. */
export const burstMargin = 1.5;
/** Milliseconds in which a burst that does not come again counts half. */
export const burstHalfLifeMs = 60_000;
/** Milliseconds after its last call for which a tool keeps at least one sandbox. */
export const idleAfterMs = 300_000;

/** What is known of the calls of one tool. Times are milliseconds that never go back. */
export class Demand {
  /** When the last calls came, the oldest first: those of the present burst, at most `maxWarm`. */
  readonly #burst: number[] = [];
  readonly #largest = new Decay();
  readonly #calls = new Decay();
  #lastMs = -Infinity;

  /**
   * A call came. A burst is what comes while a refill takes its time: nothing that is made
   * meanwhile can serve it.
   */
  arrive(nowMs: number, refillMs: number): void {
    this.#burst.push(nowMs);
    const sinceMs = nowMs - Math.max(burstMs, refillMs);
    while (this.#burst.length > maxWarm || (this.#burst[0] ?? nowMs) < sinceMs) this.#burst.shift();
    this.#largest.raiseTo(this.#burst.length, nowMs);
    this.#calls.raiseTo(this.#calls.at(nowMs) + 1, nowMs);
    this.#lastMs = nowMs;
  }

  /** How many sandboxes should wait now. */
  wanted(nowMs: number, { min, max }: WarmBounds): number {
    if (nowMs - this.#lastMs >= idleAfterMs) return min;
    const forBurst = Math.ceil(this.#largest.at(nowMs) * burstMargin - 0.5);
    return Math.min(max, Math.max(min, forBurst, 1));
  }

  /** How much the tool is used, to be compared with others at the same time. */
  use(nowMs: number): number {
    return this.#calls.at(nowMs);
  }
}

/** A number that halves again and again. */
class Decay {
  #value = 0;
  #atMs = 0;

  at(nowMs: number): number {
    return this.#value * 2 ** (-(nowMs - this.#atMs) / burstHalfLifeMs);
  }

  raiseTo(value: number, nowMs: number): void {
    this.#value = Math.max(value, this.at(nowMs));
    this.#atMs = nowMs;
  }
}

/** What one tool asks of the memory that all share. */
export interface MemoryRequest {
  /** Sandboxes that the operator wants in any case. */
  readonly min: number;
  /** Sandboxes that should wait; not below `min`. */
  readonly wanted: number;
  /**
   * The most that one of its sandboxes takes; 0 before there was one, which is how this comes to be
   * known.
   */
  readonly eachBytes: number;
  /** What its template takes; 0 where it has none. */
  readonly baseBytes: number;
  /** The larger, the later it loses its own. */
  readonly use: number;
}

/**
 * How many sandboxes each request is granted, so that all together stay below `maxBytes`: first
 * what operators want in any case, then what calls ask for, and in both the most used tools first.
 */
export function allocate(requests: readonly MemoryRequest[], maxBytes: number): readonly number[] {
  const granted = requests.map(() => 0);
  const byUse = requests.map((request, index) => ({ request, index }));
  byUse.sort((a, b) => b.request.use - a.request.use);
  let freeBytes = maxBytes;
  for (const level of ["min", "wanted"] as const) {
    for (const { request, index } of byUse) {
      let count = granted[index] ?? 0;
      while (count < request[level]) {
        const bytes = request.eachBytes + (count === 0 ? request.baseBytes : 0);
        if (bytes > freeBytes) break;
        freeBytes -= bytes;
        count++;
      }
      granted[index] = count;
    }
  }
  return granted;
}
