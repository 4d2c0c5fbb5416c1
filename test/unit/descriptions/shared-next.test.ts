/**
 * Requests that arrive during a run share the next one.
 */
import { expect, test } from "vitest";
import { SharedNext } from "../../../worker/descriptions/shared-next.ts";

test("a result is of a run that started after its request", async () => {
  const runs: PromiseWithResolvers<void>[] = [];
  const shared = new SharedNext(async () => {
    const run = Promise.withResolvers<void>();
    const number = runs.push(run);
    await run.promise;
    return number;
  });
  const first = shared.run();
  const [second, third] = [shared.run(), shared.run()];
  expect(runs).toHaveLength(1);
  runs[0]?.resolve();
  expect(await first).toBe(1);
  await Promise.resolve();
  const fourth = shared.run();
  runs[1]?.resolve();
  expect(await Promise.all([second, third])).toEqual([2, 2]);
  runs[2]?.resolve();
  expect(await fourth).toBe(3);
});

test("a run that fails does not fail the next one", async () => {
  let runs = 0;
  const shared = new SharedNext(async () => {
    await Promise.resolve();
    if (++runs === 1) throw new Error("failed");
    return runs;
  });
  const [first, second] = [shared.run(), shared.run()];
  await expect(first).rejects.toThrow("failed");
  expect(await second).toBe(2);
});
