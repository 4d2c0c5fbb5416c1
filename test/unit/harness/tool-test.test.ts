/**
 * What `harness tool test` says of values that are not as expected.
 */
import { describe, expect, test } from "vitest";
import { differences, textDifference } from "../../../harness/tool/cases/differences.ts";

describe("the differences of two values", () => {
  test.for<[expected: unknown, found: unknown, lines: readonly string[]]>([
    [{ a: 1 }, { a: 1 }, []],
    [{ a: 1 }, { a: "1" }, ['r.a: expected 1, found "1"']],
    [{ a: 1 }, { b: 1 }, ["r.a: expected 1, found nothing", "r.b: expected nothing, found 1"]],
    [{ a: [1, 2] }, { a: [1, 3] }, ["r.a[1]: expected 2, found 3"]],
    [{ a: [1] }, { a: [1, 2] }, ["r.a: expected [1], found [1,2]"]],
    [{ a: {} }, { a: [] }, ["r.a: expected {}, found []"]],
    [{ a: null }, {}, ["r.a: expected null, found nothing"]],
    [{}, undefined, ["r: expected {}, found nothing"]],
    [JSON.parse('{"__proto__": 1}'), {}, ["r.__proto__: expected 1, found nothing"]],
  ])("%j and %j", ([expected, found, lines]) => {
    expect(differences("r", expected, found, "exact")).toEqual(lines);
  });

  test("do not count members that are not named, where some are asked for", () => {
    const found = { a: { b: 1, c: 2 }, d: [{ e: 1, f: 2 }], g: 3 };
    expect(differences("r", { a: { b: 1 }, d: [{ e: 1 }] }, found, "includes")).toEqual([]);
    expect(differences("r", { d: [{ e: 2 }] }, found, "includes")).toEqual([
      "r.d[0].e: expected 2, found 1",
    ]);
  });

  test("are bounded in number and length", () => {
    const many = Object.fromEntries(
      Array.from({ length: 25 }, (_, index) => [index, "x".repeat(999)]),
    );
    const lines = differences("r", many, {}, "exact");
    expect(lines).toHaveLength(11);
    expect(lines.at(-1)).toBe("and 15 more");
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThan(300);
  });
});

describe("the difference of two texts", () => {
  test.for<[expected: string, found: string, lines: readonly string[]]>([
    ["a\nb", "a\nb", []],
    ["a\nb", "a\nc", ['t, line 2: expected "b", found "c"']],
    ["a", "a\n", ['t, line 2: expected nothing, found ""']],
    ["a\nb", "a", ['t, line 2: expected "b", found nothing']],
  ])("%j and %j", ([expected, found, lines]) => {
    expect(textDifference("t", expected, found)).toEqual(lines);
  });
});
