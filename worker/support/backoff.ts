/**
 * Delays between attempts.
 */

/** Bounds of the delays in milliseconds, and the source of chance, from 0 to below 1. */
export interface BackoffOptions {
  readonly baseMs: number;
  readonly capMs: number;
  readonly random: () => number;
}

/**
 * Endless delays in milliseconds: exponential with full jitter and a cap. Each lies between 0 and a
 * doubling bound, so that clients of a lost server do not reconnect in step.
 *
 * | delay            | 1st | 2nd | 3rd | 4th | 5th  | 6th  | 7th  |
 * |------------------|-----|-----|-----|-----|------|------|------|
 * | bound, 100..3000 | 100 | 200 | 400 | 800 | 1600 | 3000 | 3000 |
 * | mean             |  50 | 100 | 200 | 400 |  800 | 1500 | 1500 |
 */
export function* backoffDelays(options: BackoffOptions): Generator<number, never, void> {
  let boundMs = Math.min(options.baseMs, options.capMs);
  for (;;) {
    yield options.random() * boundMs;
    boundMs = Math.min(boundMs * 2, options.capMs);
  }
}
