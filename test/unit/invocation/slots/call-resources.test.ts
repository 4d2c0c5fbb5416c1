/**
 * What a call gives back, and when.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import { CallResources } from "../../../../worker/invocation/slots/call-resources.ts";
import { Disposal } from "../../../../worker/pool/disposal.ts";
import { Semaphore } from "../../../../worker/support/semaphore.ts";
import { createLogger } from "../../../../worker/telemetry/logger.ts";

/** Resources of a call with the one slot, whose sandbox ends when a test says so. */
function newCall() {
  const disposal = new Disposal(createLogger("silent", 1));
  const slots = new Semaphore({ capacity: 1, maxWaiting: 0 });
  const gone = Promise.withResolvers<void>();
  const held = new CallResources({ disposeLater: (resources) => disposal.begin(resources) });
  held.use(slots.tryAcquire());
  held.use({ [Symbol.asyncDispose]: () => gone.promise });
  return { disposal, slots, gone, held };
}

test("an answer waits for the end of its sandbox, and then its slot is free", async () => {
  const { slots, gone, held } = newCall();
  const disposed = held[Symbol.asyncDispose]();
  expect(slots.tryAcquire()).toBeUndefined();
  gone.resolve();
  await disposed;
  expect(slots.tryAcquire()).toBeDefined();
});

test("an answer does not wait for a sandbox that is ending; its slot does, and the end of all", async () => {
  const { disposal, slots, gone, held } = newCall();
  held.isEnding = true;
  await held[Symbol.asyncDispose]();
  expect(slots.tryAcquire()).toBeUndefined();
  const settled = disposal.settled();
  gone.resolve();
  await settled;
  expect(slots.tryAcquire()).toBeDefined();
});

test("a slot is free also after a sandbox that cannot be ended", async () => {
  const { disposal, slots, gone, held } = newCall();
  held.isEnding = true;
  await held[Symbol.asyncDispose]();
  const settled = disposal.settled();
  // The disposal begins in the next turn.
  await nextTurn();
  gone.reject(new Error("process 7 cannot be killed"));
  await settled;
  expect(slots.tryAcquire()).toBeDefined();
});
