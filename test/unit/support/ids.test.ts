/**
 * Generated names.
 */
import { expect, test } from "vitest";
import { newId } from "../../../worker/support/ids.ts";

test("names are 24 digits of lowercase hex, and each is another one", () => {
  const names = Array.from({ length: 10_000 }, newId);
  expect(names.filter((name) => !/^[0-9a-f]{24}$/.test(name))).toEqual([]);
  expect(new Set(names).size).toBe(names.length);
});
