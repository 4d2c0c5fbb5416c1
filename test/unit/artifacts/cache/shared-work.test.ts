/**
 * Work that several callers wait for.
 */
import { expect, test } from "vitest";
import { SharedWork } from "../../../../worker/artifacts/cache/shared-work.ts";

const never = new AbortController().signal;

/** Work that is counted, and ends when the test says so. */
function countedWork() {
  const end = Promise.withResolvers<void>();
  const signals: AbortSignal[] = [];
  const start = async (signal: AbortSignal): Promise<void> => {
    signals.push(signal);
    await end.promise;
  };
  return { signals, start, end };
}

test("is done once for all that ask meanwhile, and again for later ones", async () => {
  const [work, { signals, start, end }] = [new SharedWork(), countedWork()];
  const joined = [work.join("a", start, never), work.join("a", start, never)];
  end.resolve();
  await Promise.all(joined);
  expect(signals).toHaveLength(1);
  await work.join("a", start, never);
  expect(signals).toHaveLength(2);
});

test("goes on for others when the first that asked gives up", async () => {
  const [work, { signals, start, end }] = [new SharedWork(), countedWork()];
  const abort = new AbortController();
  const first = work.join("a", start, abort.signal);
  const second = work.join("a", start, never);
  abort.abort(new Error("enough"));
  await expect(first).rejects.toThrow("enough");
  expect(signals[0]?.aborted).toBe(false);
  end.resolve();
  await second;
  expect(signals).toHaveLength(1);
});

test("is aborted when all have given up, and starts anew for a later one", async () => {
  const [work, { signals, start, end }] = [new SharedWork(), countedWork()];
  const abort = new AbortController();
  const joined = [1, 2].map(() => work.join("a", start, abort.signal));
  abort.abort(new Error("enough"));
  await Promise.allSettled(joined);
  expect(signals[0]?.aborted).toBe(true);
  end.resolve();
  await work.join("a", start, never);
  expect(signals.map(({ aborted }) => aborted)).toEqual([true, true]);
});

test("tells all that wait of its failure", async () => {
  const work = new SharedWork();
  const fail = () => Promise.reject(new Error("failed"));
  const joined = await Promise.allSettled([1, 2].map(() => work.join("a", fail, never)));
  expect(joined.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
});
