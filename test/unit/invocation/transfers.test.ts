/**
 * Transfers of several calls at once.
 */
import { expect, test } from "vitest";
import { Transfers, maxTransfers } from "../../../worker/invocation/steps/transfers.ts";

const never = new AbortController().signal;

test("calls share the worker's transfers, so that a store has connections for all else", async () => {
  const transfers = new Transfers();
  const gate = Promise.withResolvers<void>();
  let [running, peak] = [0, 0];
  const transfer = async (): Promise<void> => {
    peak = Math.max(peak, ++running);
    await gate.promise;
    running--;
  };
  const items = Array.from({ length: 20 }, (_, index) => index);
  const calls = Array.from({ length: 10 }, () => transfers.map(items, 8, never, transfer));
  await new Promise(setImmediate);
  expect(running).toBe(maxTransfers);
  gate.resolve();
  await Promise.all(calls);
  expect(peak).toBe(maxTransfers);
});

test("a call that is given up waits no longer for one", async () => {
  const transfers = new Transfers();
  const gate = Promise.withResolvers<void>();
  const all = transfers.map(Array(maxTransfers).fill(0), maxTransfers, never, () => gate.promise);
  const abort = new AbortController();
  const waiting = transfers.map([0], 1, abort.signal, () => expect.unreachable());
  abort.abort(new Error("the call is over"));
  await expect(waiting).rejects.toThrow("the call is over");
  gate.resolve();
  await all;
});
