/**
 * How many sandboxes wait for calls.
 */
import { fc, test as propertyTest } from "../../support/properties/property.ts";
import { describe, expect, test } from "vitest";
import { maxWarm } from "../../../worker/manifest/fields/warm.ts";
import {
  Demand,
  allocate,
  burstHalfLifeMs,
  burstMs,
  idleAfterMs,
} from "../../../worker/pool/sizing.ts";

const bounds = { min: 0, max: 16 };

/** Calls that came at these times, when a refill takes so long. */
function demand(timesMs: readonly number[], refillMs = 0): Demand {
  const all = new Demand();
  for (const atMs of timesMs) all.arrive(atMs, refillMs);
  return all;
}

const times = (count: number, everyMs: number) =>
  Array.from({ length: count }, (_, index) => index * everyMs);

describe("the number of sandboxes that should wait for a tool", () => {
  test("is the least that the operator wants while nobody calls", () => {
    expect(demand([]).wanted(1_000, bounds)).toBe(0);
    expect(demand([]).wanted(1_000, { min: 3, max: 16 })).toBe(3);
  });

  test("is one after a single call, until the tool is idle", () => {
    const once = demand([0]);
    expect(once.wanted(0, bounds)).toBe(1);
    expect(once.wanted(idleAfterMs - 1, bounds)).toBe(1);
    expect(once.wanted(idleAfterMs, bounds)).toBe(0);
  });

  test("stays one for calls that come one by one", () => {
    expect(demand(times(50, burstMs + 1)).wanted(50 * (burstMs + 1), bounds)).toBe(1);
  });

  test("is half as many again as the largest burst had", () => {
    expect(demand(times(4, 1)).wanted(4, bounds)).toBe(6);
    expect(demand([...times(8, 1), 10_000]).wanted(10_000, bounds)).toBeGreaterThanOrEqual(10);
  });

  test("counts as a burst what comes while a refill takes its time", () => {
    const everySecond = times(10, 1_000);
    expect(demand(everySecond, 60).wanted(9_000, bounds)).toBe(1);
    expect(demand(everySecond, 5_000).wanted(9_000, bounds)).toBe(9);
  });

  test("halves while bursts do not come again", () => {
    const burst = demand(times(8, 1));
    expect(burst.wanted(7, bounds)).toBe(12);
    expect(burst.wanted(7 + burstHalfLifeMs, bounds)).toBe(6);
    expect(burst.wanted(7 + 2 * burstHalfLifeMs, bounds)).toBe(3);
  });

  propertyTest.prop([
    fc.array(fc.nat(400), { maxLength: 200 }),
    fc.nat(maxWarm),
    fc.nat(maxWarm),
    fc.nat(10_000),
    fc.nat(2 * idleAfterMs),
  ])("never leaves the operator's bounds", (gapsMs, a, b, refillMs, laterMs) => {
    const all = new Demand();
    let nowMs = 0;
    for (const gapMs of gapsMs) all.arrive((nowMs += gapMs), refillMs);
    const own = { min: Math.min(a, b), max: Math.max(a, b) };
    const wanted = all.wanted(nowMs + laterMs, own);
    expect(wanted).toBeGreaterThanOrEqual(own.min);
    expect(wanted).toBeLessThanOrEqual(own.max);
    expect(Number.isInteger(wanted)).toBe(true);
  });
});

describe("how much a tool is used", () => {
  test("is more for one that was called more, and for one that was called later", () => {
    const [often, seldom] = [demand(times(10, 1_000)), demand([9_000])];
    expect(often.use(9_000)).toBeGreaterThan(seldom.use(9_000));
    const [late, early] = [demand([60_000]), demand([0])];
    expect(late.use(60_000)).toBeGreaterThan(early.use(60_000));
  });
});

describe("the memory that all share", () => {
  const claim = { min: 0, wanted: 4, eachBytes: 10, baseBytes: 0, use: 1 };

  test("is enough for everybody where there is much", () => {
    expect(allocate([claim, claim], 80)).toEqual([4, 4]);
  });

  test("goes to each tool in turn, to the most used first", () => {
    expect(allocate([claim, { ...claim, use: 2 }], 50)).toEqual([2, 3]);
  });

  test("is not taken by one tool with large bursts", () => {
    const large = { ...claim, wanted: 32, use: 100 };
    const small = { ...claim, wanted: 2 };
    expect(allocate([large, small, { ...small, baseBytes: 30 }], 120)).toEqual([5, 2, 2]);
  });

  test("goes to those that fit where one is too large", () => {
    expect(allocate([{ ...claim, eachBytes: 70, use: 2 }, claim], 60)).toEqual([0, 4]);
  });

  test("goes to what operators want in any case before it goes to what is used", () => {
    expect(allocate([{ ...claim, min: 3, use: 0 }, claim], 50)).toEqual([3, 2]);
  });

  test("counts a template with the first sandbox that is made from it", () => {
    const withTemplate = { ...claim, baseBytes: 25 };
    expect(allocate([withTemplate], 34)).toEqual([0]);
    expect(allocate([withTemplate], 35)).toEqual([1]);
    expect(allocate([withTemplate], 55)).toEqual([3]);
  });

  test("does not keep a tool from its first sandbox whose size nobody knows", () => {
    expect(
      allocate(
        [
          { ...claim, use: 2 },
          { ...claim, eachBytes: 0 },
        ],
        40,
      ),
    ).toEqual([4, 4]);
  });

  const anyClaim = fc
    .record({
      min: fc.nat(8),
      more: fc.nat(8),
      eachBytes: fc.nat(100),
      baseBytes: fc.nat(100),
      use: fc.float({ min: 0, max: 10, noNaN: true }),
    })
    .map(({ min, more, ...rest }) => ({ ...rest, min, wanted: min + more }));

  propertyTest.prop([fc.array(anyClaim, { maxLength: 8 }), fc.nat(2_000)])(
    "is never more than there is, and nobody gets more than wanted",
    (claims, maxBytes) => {
      const granted = allocate(claims, maxBytes);
      const takenBytes = claims.map(({ eachBytes, baseBytes }, index) =>
        granted[index]! > 0 ? granted[index]! * eachBytes + baseBytes : 0,
      );
      expect(takenBytes.reduce((a, b) => a + b, 0)).toBeLessThanOrEqual(maxBytes);
      for (const [index, { wanted }] of claims.entries())
        expect(granted[index]).toBeLessThanOrEqual(wanted);
    },
  );
});
