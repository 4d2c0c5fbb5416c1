/**
 * The slots of calls whose tools call other tools.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { CallSlot, LentSlots } from "../../../../worker/invocation/slots/call-slot.ts";
import { Semaphore } from "../../../../worker/support/semaphore.ts";
import { fc, test as propertyTest } from "../../../support/properties/property.ts";

const never = new AbortController().signal;

/** A call has a slot of this many, and there may be this many lent ones. */
async function slotOf(capacity: number, maxLent = 10) {
  const slots = new Semaphore({ capacity, maxWaiting: 100 });
  const lent = new LentSlots(maxLent, 0);
  const slot = new CallSlot(slots, lent, await slots.acquire(never));
  return { slots, lent, slot };
}

describe("a slot", () => {
  test("is lent while a call of its own runs, and back before the answer", async () => {
    const { slots, lent, slot } = await slotOf(1);
    slot.begin();
    expect([slots.inUse, lent.count]).toEqual([0, 1]);
    await slot.end(never);
    expect([slots.inUse, lent.count]).toEqual([1, 0]);
    slot[Symbol.dispose]();
    expect(slots.inUse).toBe(0);
  });

  test("is lent until the last of several calls has ended", async () => {
    const { slots, slot } = await slotOf(2);
    slot.begin();
    slot.begin();
    await slot.end(never);
    expect(slots.inUse).toBe(0);
    await slot.end(never);
    expect(slots.inUse).toBe(1);
  });

  test("comes back before nested calls, and these before new ones", async () => {
    const { slots, slot } = await slotOf(1);
    slot.begin();
    const inner = await slots.acquire(never, "nested");
    const order: string[] = [];
    const waiting = [
      slots.acquire(never).then((lease) => (order.push("new"), lease)),
      slots.acquire(never, "nested").then((lease) => (order.push("nested"), lease)),
    ];
    const back = slot.end(never).then(() => order.push("back"));
    inner[Symbol.dispose]();
    await back;
    expect(order).toEqual(["back"]);
    slot[Symbol.dispose]();
    (await waiting[1])?.[Symbol.dispose]();
    (await waiting[0])?.[Symbol.dispose]();
    expect(order).toEqual(["back", "nested", "new"]);
    expect(slots.inUse).toBe(0);
  });

  test("stays lent when another call begins while it is waited for", async () => {
    const { slots, lent, slot } = await slotOf(1);
    slot.begin();
    const other = await slots.acquire(never);
    const back = slot.end(never);
    slot.begin();
    other[Symbol.dispose]();
    await back;
    expect([slots.inUse, lent.count]).toEqual([0, 1]);
    await slot.end(never);
    expect([slots.inUse, lent.count]).toEqual([1, 0]);
  });

  test("is waited for once when another call starts and ends meanwhile", async () => {
    const { slots, lent, slot } = await slotOf(1);
    slot.begin();
    const other = await slots.acquire(never);
    const first = slot.end(never);
    slot.begin();
    const second = slot.end(never);
    expect(slots.waiting).toBe(1);
    other[Symbol.dispose]();
    await Promise.all([first, second]);
    expect([slots.inUse, slots.waiting, lent.count]).toEqual([1, 0, 0]);
  });

  test("is given back once, whatever is going on", async () => {
    const { slots, lent, slot } = await slotOf(1);
    slot.begin();
    slot[Symbol.dispose]();
    await slot.end(never);
    slot[Symbol.dispose]();
    expect([slots.inUse, lent.count]).toEqual([0, 0]);
  });

  test("is not waited for any longer than its signal allows", async () => {
    const { slots, lent, slot } = await slotOf(1);
    slot.begin();
    using _other = await slots.acquire(never);
    const over = new AbortController();
    const back = slot.end(over.signal);
    over.abort(new Error("over"));
    await expect(back).rejects.toThrow("over");
    slot[Symbol.dispose]();
    expect([slots.waiting, lent.count]).toEqual([0, 0]);
  });

  test("is not lent beyond the bound", async () => {
    const { slots, lent, slot } = await slotOf(2, 1);
    const other = new CallSlot(slots, lent, await slots.acquire(never));
    slot.begin();
    expect(() => other.begin()).toThrow(
      expect.objectContaining({
        code: "RESOURCE_EXHAUSTED",
        message: expect.stringContaining("1"),
      }),
    );
    await slot.end(never);
    other.begin();
    expect(lent.count).toBe(1);
  });
});

/** A call that makes calls of its own, one after the other, each of which does the same. */
async function nested(
  parts: { slots: Semaphore; lent: LentSlots; count: () => Disposable },
  calls: number,
  depth: number,
): Promise<void> {
  const lease = await parts.slots.acquire(never, depth === 0 ? "new" : "nested");
  using slot = new CallSlot(parts.slots, parts.lent, lease);
  for (let n = 0; n < calls; n++) {
    using _running = parts.count();
    await nextTurn();
    _running[Symbol.dispose]();
    if (depth === 2) continue;
    slot.begin();
    try {
      await nested(parts, calls, depth + 1);
    } finally {
      await slot.end(never);
    }
  }
}

propertyTest.prop([fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 12 })])(
  "programs in any number end, and no more run than there are slots",
  async (capacity, programs) => {
    const slots = new Semaphore({ capacity, maxWaiting: 1_000 });
    const lent = new LentSlots(1_000, 0);
    let [running, most] = [0, 0];
    const count = (): Disposable => {
      most = Math.max(most, ++running);
      let isOver = false;
      return {
        [Symbol.dispose]: () => {
          if (!isOver) running--;
          isOver = true;
        },
      };
    };
    const all = Array.from({ length: programs }, () => nested({ slots, lent, count }, 2, 0));
    await Promise.all(all);
    expect(most).toBeLessThanOrEqual(capacity);
    expect([slots.inUse, slots.waiting, lent.count]).toEqual([0, 0, 0]);
  },
);
