/**
 * Calls that wait for a slot.
 */
import { PassThrough } from "node:stream";
import { describe, expect, test } from "vitest";
import { LentSlots } from "../../../../worker/invocation/slots/call-slot.ts";
import { leaseSlot, priorityOf } from "../../../../worker/invocation/slots/capacity.ts";
import type { ToolEntry } from "../../../../worker/manifest/manifest.ts";
import { defaultGatewayLimits } from "../../../../worker/protocol/tool-calls/limits.ts";
import { systemClock } from "../../../../worker/support/clock.ts";
import { type Priority, Semaphore } from "../../../../worker/support/semaphore.ts";
import { createLogger } from "../../../../worker/telemetry/logger.ts";

const never = new AbortController().signal;
const log = createLogger("debug", new PassThrough());
const gateway: ToolEntry["gateway"] = {
  tools: ["add"],
  remote: [],
  limits: defaultGatewayLimits,
  isIdempotent: true,
};

/** A worker with so many slots, of which so many may be lent. */
function workerOf(capacity: number, maxLent: number, maxWaiting = 10) {
  const slots = new Semaphore({ capacity, maxWaiting });
  const lentSlots = new LentSlots(maxLent, maxWaiting);
  const parts = { slotsOf: () => slots, lentSlots, clock: systemClock };
  const lease = (
    tool: Pick<ToolEntry, "gateway">,
    priority: Priority = "new",
    { signal = never, limitMs = 60_000 } = {},
  ) => {
    const times = { limitMs, deadlineMs: systemClock.nowMs() + 60_000 };
    const context = { signal, waitSignal: never, log, priority };
    return leaseSlot(parts, { queue: "default", ...tool }, times, context);
  };
  return { slots, lentSlots, lease };
}

test.each([
  [{}, {}, "new"],
  [{ depth: 0 }, { isInner: false }, "new"],
  [{ depth: 1 }, {}, "nested"],
  [{ depth: 1 }, { isInner: true }, "inner"],
] as const)(
  "a call %j of %j has its place among those that wait: %s",
  (call, context, priority) => {
    expect(priorityOf(call, context)).toBe(priority);
  },
);

describe("a new call of a tool that calls others", () => {
  test("starts when it could lend its slot, so that its calls are not refused", async () => {
    const { slots, lentSlots, lease } = workerOf(2, 1);
    const first = await lease({ gateway });
    const waiting = lease({ gateway });
    first.begin();
    expect([slots.inUse, lentSlots.lenders.waiting]).toEqual([0, 1]);
    await first.end(never);
    first[Symbol.dispose]();
    using second = await waiting;
    second.begin();
    expect(lentSlots.count).toBe(1);
  });

  test("does not hold up other calls meanwhile", async () => {
    const { lease } = workerOf(4, 1);
    using _first = await lease({ gateway });
    const stop = new AbortController();
    const waiting = lease({ gateway }, "new", stop);
    using _plain = await lease({ gateway: undefined });
    using _inner = await lease({ gateway }, "inner");
    using _nested = await lease({ gateway }, "nested");
    stop.abort(new Error("stopped"));
    await expect(waiting).rejects.toThrow("stopped");
  });

  test("is refused when as many wait as may", async () => {
    const { lease } = workerOf(2, 1, 0);
    using _first = await lease({ gateway });
    await expect(lease({ gateway })).rejects.toThrow(
      expect.objectContaining({ code: "RESOURCE_EXHAUSTED" }),
    );
  });

  test("gives its permit back when no slot is free in time", async () => {
    const { lentSlots, lease } = workerOf(1, 1);
    using _other = await lease({ gateway: undefined });
    await expect(lease({ gateway }, "new", { limitMs: 10 })).rejects.toThrow();
    expect(lentSlots.lenders.inUse).toBe(0);
  });
});
