/**
 * When the calls of a soak are due: fixed ahead, so that a slow worker does not slow them down.
 */
import { ChaosRandom } from "../../test/support/chaos/random.ts";

/**
 * Milliseconds from the start at which each call is due, in order: a Poisson process, whose gaps
 * are exponential. The same seed gives the same schedule.
 */
export function* schedule(
  callsPerSecond: number,
  seconds: number,
  seed: number,
): Generator<number, void, void> {
  const random = new ChaosRandom(seed);
  for (let dueMs = 0; ;) {
    dueMs += (-Math.log(1 - random.next()) * 1000) / callsPerSecond;
    if (dueMs >= seconds * 1000) return;
    yield dueMs;
  }
}
