/**
 * Delays between attempts.
 */
import { fc, test } from "../../support/properties/property.ts";
import { describe, expect } from "vitest";
import { backoffDelays } from "../../../worker/support/backoff.ts";

const almostOne = 1 - Number.EPSILON;

function first(count: number, options: Parameters<typeof backoffDelays>[0]): number[] {
  const delays = backoffDelays(options);
  return Array.from({ length: count }, () => delays.next().value);
}

describe("backoff", () => {
  test("doubles its bound up to the cap, as its table says", () => {
    const bounds = first(7, { baseMs: 100, capMs: 3_000, random: () => almostOne });
    expect(bounds.map(Math.round)).toEqual([100, 200, 400, 800, 1_600, 3_000, 3_000]);
  });

  test("may not wait at all", () => {
    expect(first(3, { baseMs: 100, capMs: 3_000, random: () => 0 })).toEqual([0, 0, 0]);
  });

  const delayMs = fc.integer({ min: 0, max: 3_600_000 });
  const chance = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
  test.prop([delayMs, delayMs, fc.array(chance, { minLength: 1 })])(
    "never waits less than nothing or longer than its cap",
    (baseMs, capMs, chances) => {
      let turn = 0;
      const random = (): number => chances[turn++ % chances.length] as number;
      for (const [index, delay] of first(80, { baseMs, capMs, random }).entries()) {
        expect(delay).toBeGreaterThanOrEqual(0);
        expect(delay).toBeLessThanOrEqual(Math.min(capMs, baseMs * 2 ** index));
      }
    },
  );
});
