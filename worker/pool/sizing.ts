/**
 * The number of idle sandboxes of each tool: its demand, within the memory budget of all. Pure.
 */
import type { WarmBounds } from "../manifest/manifest.ts";
import { maxWarm } from "../manifest/fields/warm.ts";

/** Least milliseconds of a burst: a refill may take less. */
export const burstMs = 100;
/** Idle sandboxes per call of the largest burst: the next one may be larger. */
export const burstMargin = 1.5;
/** Milliseconds after which a burst counts half. */
export const burstHalfLifeMs = 60_000;
/** Milliseconds after its last call for which a tool keeps an idle sandbox. */
export const idleAfterMs = 300_000;

/** The demand for one tool. Times are milliseconds on the monotonic clock. */
export class Demand {
  /** Times of the calls of the present burst, the oldest first, at most `maxWarm`. */
  readonly #burst: number[] = [];
  readonly #largest = new Decay();
  readonly #calls = new Decay();
  #lastMs = -Infinity;

  /** Counts a call. A burst is the calls within one refill: no refill can serve them. */
  arrive(nowMs: number, refillMs: number): void {
    this.#burst.push(nowMs);
    const sinceMs = nowMs - Math.max(burstMs, refillMs);
    while (this.#burst.length > maxWarm || (this.#burst[0] ?? nowMs) < sinceMs) this.#burst.shift();
    this.#largest.raiseTo(this.#burst.length, nowMs);
    this.#calls.raiseTo(this.#calls.at(nowMs) + 1, nowMs);
    this.#lastMs = nowMs;
  }

  /** The number of sandboxes that should be idle now. */
  wanted(nowMs: number, { min, max }: WarmBounds): number {
    if (nowMs - this.#lastMs >= idleAfterMs) return min;
    const forBurst = Math.ceil(this.#largest.at(nowMs) * burstMargin - 0.5);
    return Math.min(max, Math.max(min, forBurst, 1));
  }

  /** Recent calls, for a comparison of tools at the same time. */
  use(nowMs: number): number {
    return this.#calls.at(nowMs);
  }
}

/** A number with a half-life. */
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

/** The part of one tool in the memory budget. */
export interface MemoryRequest {
  /** Sandboxes that the operator asks for. */
  readonly min: number;
  /** Sandboxes that should be idle; not below `min`. */
  readonly wanted: number;
  /** The most that one of its sandboxes took; 0 before the first. */
  readonly eachBytes: number;
  /** Bytes of its template; 0 without one. */
  readonly baseBytes: number;
  /** A larger use gets memory first. */
  readonly use: number;
}

/**
 * The number of sandboxes for each request, within `maxBytes` for all: first up to `min`, then up
 * to `wanted`. In both each tool gets its next one before any gets one more, the most used first:
 * so a tool with large bursts leaves some to others.
 */
export function allocate(requests: readonly MemoryRequest[], maxBytes: number): readonly number[] {
  const granted = requests.map(() => 0);
  const byUse = requests.map((request, index) => ({ request, index }));
  byUse.sort((a, b) => b.request.use - a.request.use);
  let freeBytes = maxBytes;
  for (const level of ["min", "wanted"] as const) {
    for (let next = 1; next <= maxWarm; next++) {
      for (const { request, index } of byUse) {
        if (granted[index] !== next - 1 || next > request[level]) continue;
        const bytes = request.eachBytes + (next === 1 ? request.baseBytes : 0);
        if (bytes > freeBytes) continue;
        freeBytes -= bytes;
        granted[index] = next;
      }
    }
  }
  return granted;
}
