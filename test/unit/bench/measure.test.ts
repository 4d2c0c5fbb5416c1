/**
 * How rows are timed and counted.
 */
import { expect, test } from "vitest";
import { type Row, inFlight, measure, quantile } from "../../../bench/measure.ts";
import type { StartKind } from "../../../worker/protocol/execution.ts";

const rounds = 3;
const isQuiet = (): Promise<void> => Promise.resolve();

/** A row whose runs take what `elapsedMs` says, and start as the list says, one after the other. */
function rowOf(elapsedMs: number, starts: readonly StartKind[] = []): Row & { calls: number } {
  const row = {
    name: `${elapsedMs} ms`,
    kind: "floor" as const,
    isAlone: true,
    calls: 0,
    run: () => {
      const start = starts[row.calls++ % starts.length];
      return Promise.resolve({ elapsedMs, ...(start && { start }) });
    },
  };
  return row;
}

test("each round runs each row once, every other one backwards, and the first ones do not count", async () => {
  const order: number[] = [];
  const rows = [1, 2].map((ms) => {
    const row = rowOf(ms);
    return { ...row, run: () => (order.push(ms), row.run()) };
  });
  const [first, second] = await measure(rows, rounds, isQuiet);
  expect(order.slice(0, 4)).toEqual([2, 1, 1, 2]);
  expect(order.length).toBeGreaterThan(2 * rounds);
  expect([first!.medianMs, second!.medianMs]).toEqual([1, 2]);
});

test("a row is run when as many sandboxes wait as should", async () => {
  let [asked, seen] = [0, 0];
  const row = rowOf(1);
  const watched: Row = {
    ...row,
    run: () => {
      expect(asked).toBe(++seen);
      return row.run();
    },
  };
  await measure([watched], rounds, () => Promise.resolve(void asked++));
  expect(seen).toBe(row.calls);
});

test("calls that found a sandbox, had one made of a template, and started cold are told apart", async () => {
  const row = rowOf(1, ["template", "template", "cold"]);
  // Of three calls the first finds one waiting.
  const hits = (): Promise<number> => Promise.resolve(Math.ceil(row.calls / 3));
  const [measured] = await measure([{ ...row, kind: "template", hits }], 6, isQuiet);
  expect(measured!.timedStarts).toEqual({ hits: 2, misses: 2, cold: 2 });
});

test("calls of a pool found a sandbox or started cold", async () => {
  const row = rowOf(1, ["pool", "cold", "pool"]);
  const [measured] = await measure([{ ...row, kind: "pool" }], 6, isQuiet);
  expect(measured!.timedStarts).toEqual({ hits: 4, misses: 0, cold: 2 });
});

test("calls that all start alike are not told apart", async () => {
  const [measured] = await measure([{ ...rowOf(1, ["cold"]), kind: "cold" }], rounds, isQuiet);
  expect(measured!.timedStarts).toBeUndefined();
});

test("the throughput of a row is taken with so many at once, and not of rows that say nothing by it", async () => {
  let [running, most] = [0, 0];
  const busy: Row = {
    name: "busy",
    kind: "floor",
    async run() {
      most = Math.max(most, ++running);
      await new Promise((resolve) => setTimeout(resolve, 5));
      running--;
      return { elapsedMs: 5 };
    },
  };
  const [many, alone] = await measure([busy, rowOf(1)], 1, isQuiet);
  expect(most).toBe(inFlight);
  // A timer may be up to a millisecond early.
  expect(many!.callsPerSecond).toBeLessThan((inFlight * 1000) / 4);
  expect(many!.callsPerSecond).toBeGreaterThan(0);
  expect(alone!.callsPerSecond).toBeUndefined();
});

test("a failing call ends the measurement", async () => {
  const failing: Row = { ...rowOf(1), run: () => Promise.reject(new Error("no answer")) };
  await expect(measure([failing], rounds, isQuiet)).rejects.toThrow("no answer");
});

test("a quantile is the least value that so many of those measured do not exceed", () => {
  const sorted = Array.from({ length: 100 }, (_, index) => index + 1);
  expect([0, 0.5, 0.99, 1].map((q) => quantile(sorted, q))).toEqual([1, 50, 99, 100]);
  expect(quantile([7], 0.99)).toBe(7);
});
