/**
 * The runner's own JSON against the language's.
 */
import { anyCharacter, fc, test as property } from "../../support/properties/property.ts";
import { describe, expect, test } from "vitest";
import { NotJson, encode } from "../../../tool-runner/node/json.js";
import { timesTheWork } from "../../support/cpu-time.ts";

describe("what JSON.stringify writes without loss is written in the same way", () => {
  property.prop([fc.jsonValue({ maxDepth: 6 })], { numRuns: 500 })("any JSON value", (value) => {
    expect(encode(value)).toBe(JSON.stringify(value));
  });

  property.prop([fc.string({ unit: anyCharacter })], { numRuns: 500 })("any text", (text) => {
    expect(encode({ [text]: text })).toBe(JSON.stringify({ [text]: text }));
  });

  property.prop([fc.double()], { numRuns: 500 })("any number", (number) => {
    expect(encode([number])).toBe(JSON.stringify([number]));
  });
});

property.prop(
  [
    fc.anything({
      withBigInt: true,
      withDate: true,
      withMap: true,
      withSet: true,
      withNullPrototype: true,
      withTypedArray: true,
      withSparseArray: true,
    }),
  ],
  { numRuns: 500 },
)("any value at all is written as JSON, left out or refused", (value) => {
  try {
    const json = encode(value);
    if (json !== undefined) JSON.parse(json);
  } catch (error) {
    expect(error).toBeInstanceOf(NotJson);
  }
});

test("a quarter of a million values take not much longer than the language's own", () => {
  const rows = Array.from({ length: 50_000 }, (_, id) => ({
    id,
    name: `row ${id}`,
    ok: true,
    x: [null],
  }));
  const some = rows.slice(0, 2_000);
  const cost = timesTheWork(
    () => JSON.stringify(some),
    () => encode(some),
  );
  expect(cost).toBeLessThan(60);
  expect(encode(rows)).toBe(JSON.stringify(rows));
});
