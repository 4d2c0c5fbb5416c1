/**
 * Which calls a busy worker gives back.
 */
import { describe, expect, test } from "vitest";
import { mayHandBack } from "../../../worker/broker/hand-back.ts";
import { poisonOf } from "../../../worker/invocation/redelivery.ts";

const first = { redelivered: false, deliveryCount: 1 };

describe("a call that was not begun", () => {
  test.each([undefined, 4, 5, 200])("goes back when it may be delivered %s times", (most) => {
    expect(mayHandBack({ ...first, maxDeliveries: most }, true)).toBe(true);
  });

  test.each([1, 2, 3])("stays when it may be delivered %s times only", (most) => {
    expect(mayHandBack({ ...first, maxDeliveries: most }, true)).toBe(false);
  });

  test("stays when it was delivered before", () => {
    const again = { redelivered: true, deliveryCount: 2, maxDeliveries: 20 };
    expect(mayHandBack(again, true)).toBe(false);
    expect(mayHandBack({ ...again, redelivered: false }, true)).toBe(false);
    expect(mayHandBack({ ...again, deliveryCount: 1 }, true)).toBe(false);
  });

  test("stays when its second delivery would not run", () => {
    expect(mayHandBack({ ...first, maxDeliveries: 20 }, false)).toBe(false);
  });

  test("runs at its second delivery", () => {
    const second = { redelivered: true, deliveryCount: 2 };
    for (const maxDeliveries of [4, 5, 200]) {
      expect(mayHandBack({ ...first, maxDeliveries }, true)).toBe(true);
      expect(poisonOf({ ...second, maxDeliveries })).toBeUndefined();
    }
  });
});
