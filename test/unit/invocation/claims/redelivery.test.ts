/**
 * Which calls must not run because the broker has handed them out before.
 */
import { describe, expect, test } from "vitest";
import {
  mayHaveStarted,
  poisonOf,
  requireRepeatable,
} from "../../../../worker/invocation/claims/redelivery.ts";

const nth = (deliveryCount: number, maxDeliveries: number | undefined) => ({
  ...{ deliveryCount, maxDeliveries },
  redelivered: deliveryCount > 1,
});

describe("a call may have begun elsewhere", () => {
  test.each([
    [{ redelivered: false, deliveryCount: 1 }, false],
    [{ redelivered: true, deliveryCount: 1 }, true],
    [{ redelivered: false, deliveryCount: 2 }, true],
    [{ redelivered: true, deliveryCount: 5 }, true],
  ])("when the broker says either: %j", (delivery, expected) => {
    expect(mayHaveStarted({ ...delivery, properties: {} })).toBe(expected);
  });

  test("when its sender has sent it before", () => {
    const first = { redelivered: false, deliveryCount: 1 };
    expect(mayHaveStarted({ ...first, properties: { resent: "true" } })).toBe(true);
    expect(mayHaveStarted({ ...first, properties: { resent: "false" } })).toBe(false);
  });
});

describe("a call is poisoned", () => {
  test.each([
    [1, 5, false],
    [3, 5, false],
    [4, 5, true],
    [5, 5, true],
    [6, 5, true],
    [1, 2, false],
    [2, 2, true],
    [2, 3, true],
    [2, 1, true],
  ])("at delivery %i of %i: %s", (count, max, expected) => {
    expect(poisonOf(nth(count, max), 0, 4) !== undefined).toBe(expected);
  });

  test("with the count in its words", () => {
    expect(poisonOf(nth(5, 5), 0, 4)).toMatchObject({
      code: "POISONED",
      retryable: false,
      message:
        "The call was delivered 5 times and never answered: it is given up, and was not run this time",
    });
  });

  test.each([
    [3, false],
    [4, true],
    [5, true],
  ])("after %i runs that ended their workers, of 4: %s", (runs, expected) => {
    expect(poisonOf(nth(9, 50), runs, 4) !== undefined).toBe(expected);
  });

  test("with the runs in its words", () => {
    expect(poisonOf(nth(9, 50), 4, 4)).toMatchObject({
      code: "POISONED",
      message:
        "The call was started 4 times and never answered: it is given up, and was not run this time",
    });
  });

  test("not by deliveries where the broker has no limit, and not at its only delivery", () => {
    expect(poisonOf(nth(1_000, undefined), 3, 4)).toBeUndefined();
    expect(poisonOf(nth(1, 1), 0, 4)).toBeUndefined();
  });
});

describe("a tool that must not run twice", () => {
  test("is refused to a call that was delivered before", () => {
    expect(() => requireRepeatable({ name: "pay", idempotent: false }, true)).toThrow(
      expect.objectContaining({
        code: "NOT_REPEATED",
        retryable: false,
        message:
          "The call was delivered again, and tool 'pay' may have run for it already. Its manifest entry forbids to run it again",
      }),
    );
  });

  test.each([
    [false, false],
    [true, true],
    [true, false],
  ])("is not when idempotent is %s and redelivered is %s", (idempotent, isRedelivered) => {
    expect(() => requireRepeatable({ name: "pay", idempotent }, isRedelivered)).not.toThrow();
  });
});
