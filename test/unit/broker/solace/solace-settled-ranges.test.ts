/**
 * The ranges in which the client library of Solace keeps what was settled.
 */
import { fc, test } from "../../../support/properties/property.ts";
import { describe, expect } from "vitest";
import type { Settlement } from "../../../../worker/broker/broker.ts";
import { SettledRanges } from "../../../../worker/broker/solace/library/settled-ranges.ts";

const outcomes: readonly Settlement[] = ["accepted", "failed", "rejected"];

/** Messages in the order in which they are settled, each with its number. */
const settlements = fc
  .array(fc.constantFrom(...outcomes), { maxLength: 60 })
  .map((all) => all.map((outcome, index) => ({ number: index + 1, outcome })))
  .chain((all) => fc.shuffledSubarray(all, { minLength: 0 }));

/** Counted anew from everything that was settled. */
function countOf(ended: ReadonlyMap<number, Settlement>): number {
  return ended
    .entries()
    .filter(([number, outcome]) => ended.get(number - 1) !== outcome)
    .toArray().length;
}

describe("settled messages", () => {
  test.prop([settlements])("are as many ranges as neighbours ended differently", (all) => {
    const ranges = new SettledRanges();
    const ended = new Map<number, Settlement>([[0, "accepted"]]);
    for (const { number, outcome } of all) {
      ranges.add(number, outcome);
      ended.set(number, outcome);
      expect(ranges.count).toBe(countOf(ended));
    }
  });

  test.prop([settlements])("add one range each at most", (all) => {
    const ranges = new SettledRanges();
    for (const { number, outcome } of all) {
      const before = ranges.count;
      ranges.add(number, outcome);
      expect(ranges.count).toBeLessThanOrEqual(before + 1);
    }
  });

  test("are one range when all ended well, in whatever order", () => {
    const ranges = new SettledRanges();
    for (const number of [3, 1, 5, 4, 2]) ranges.add(number, "accepted");
    expect(ranges.count).toBe(1);
  });
});
