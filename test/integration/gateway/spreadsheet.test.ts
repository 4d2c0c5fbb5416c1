/**
 * The example of a spreadsheet.
 *
 * @module-tag full
 */
import { expect, test } from "vitest";
import { compareWays } from "../../../bench/spreadsheet.ts";

test("a program has the result of twenty calls, for a tenth of their bytes", async () => {
  const [byCalls, byProgram] = await compareWays(1);
  expect([byCalls!.calls, byProgram!.calls]).toEqual([20, 1]);
  expect(Object.keys(byProgram!.result as object)).toHaveLength(3);
  expect(byProgram!.result).toEqual(byCalls!.result);
  expect(byProgram!.bytes).toBeLessThan(byCalls!.bytes / 10);
}, 60_000);
