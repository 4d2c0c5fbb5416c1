/**
 * What a call gives back, and when.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import { CallResources } from "../../../../worker/invocation/slots/call-resources.ts";
import { CallSeries } from "../../../../worker/pool/call-series.ts";
import { Disposal } from "../../../../worker/pool/disposal.ts";
import { systemClock } from "../../../../worker/support/clock.ts";
import { Semaphore } from "../../../../worker/support/semaphore.ts";
import { createLogger } from "../../../../worker/telemetry/logger.ts";

/** Resources of a call with the one slot, whose sandbox ends when a test says so. */
function newCall() {
  const series = new CallSeries(systemClock);
  const disposal = new Disposal({ log: createLogger("silent", 1), clock: systemClock, series });
  const slots = new Semaphore({ capacity: 1, maxWaiting: 0 });
  const disposed = Promise.withResolvers<void>();
  const held = new CallResources({
    disposeLater: (resources) => disposal.beginAfterSeries(resources),
  });
  held.useSlot(slots.tryAcquire()!);
  held.use({ [Symbol.asyncDispose]: () => disposed.promise });
  return { disposal, slots, disposed, held };
}

const never = Promise.withResolvers<void>().promise;

test("an answer waits for the end of its sandbox, and then its slot is free", async () => {
  const { slots, disposed, held } = newCall();
  const answered = held[Symbol.asyncDispose]();
  expect(slots.tryAcquire()).toBeUndefined();
  disposed.resolve();
  await answered;
  expect(slots.tryAcquire()).toBeDefined();
});

test("an answer does not wait for a sandbox that is ending; its slot does", async () => {
  const { disposal, slots, disposed, held } = newCall();
  const gone = Promise.withResolvers<void>();
  held.ending = gone.promise;
  await held[Symbol.asyncDispose]();
  await nextTurn();
  expect(slots.tryAcquire()).toBeUndefined();
  gone.resolve();
  await nextTurn();
  // What else is given back takes its time.
  const slot = slots.tryAcquire();
  expect(slot).toBeDefined();
  slot?.[Symbol.dispose]();
  disposed.resolve();
  await disposal.settled();
  expect(slots.inUse).toBe(0);
});

test("a slot is free also after a sandbox that cannot be ended", async () => {
  const { disposal, slots, disposed, held } = newCall();
  held.ending = never;
  await held[Symbol.asyncDispose]();
  const settled = disposal.settled();
  // The disposal begins in the next turn.
  await nextTurn();
  disposed.reject(new Error("process 7 cannot be killed"));
  await settled;
  expect(slots.tryAcquire()).toBeDefined();
});
