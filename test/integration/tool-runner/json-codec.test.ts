/**
 * The runner's JSON codec says what Python's `json` says, with the C module it uses and without.
 */
import { spawnSync } from "node:child_process";
import { anyCharacter, fc, test as property } from "../../support/properties/property.ts";
import { describe, expect, test } from "vitest";
import { fixtures, python, runnerDir } from "./run-tool.ts";

/** Any JSON document, with text of any code points and numbers of every size. */
const documents = fc.array(
  fc.oneof(
    fc.jsonValue({ stringUnit: anyCharacter, maxDepth: 6 }),
    fc.jsonValue({ depthSize: "large" }),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.string({ unit: anyCharacter, maxLength: 300 }),
  ),
  { minLength: 200, maxLength: 200 },
);

function differences(texts: readonly string[], ...flags: readonly string[]) {
  const { stdout, stderr, status } = spawnSync(
    python,
    ["-I", "-B", `${fixtures}/codec_check.py`, runnerDir, ...flags],
    {
      input: texts.join("\n"),
      encoding: "utf8",
      maxBuffer: 1 << 28,
    },
  );
  return { differences: stdout, codec: stderr.trim(), status };
}

function toText(value: unknown): string {
  return JSON.stringify(value);
}

describe.for([
  ["accelerated", []],
  ["portable", ["without-accelerator"]],
] as const)("the %s codec", ([codec, flags]) => {
  property.prop([documents], { numRuns: 5 })("reads and writes as `json` does", (values) => {
    expect(differences(values.map(toText), ...flags)).toEqual({
      differences: "",
      codec,
      status: 0,
    });
  });

  test("reads and writes what is easily got wrong as `json` does", () => {
    const values = [
      [0, -0, 1e308, 5e-324, 123456789012345680000, 0.1],
      ["\ud800", "a\udfffb", "\u0000\u001f\u007f\u2028", '\\"/\b\f', "😀"],
      { "": { "": [] }, 1: null, ["__proto__"]: [] },
      Array.from({ length: 100 }).reduce<unknown>((inner) => [inner], []),
    ];
    expect(differences(values.map(toText), ...flags)).toEqual({
      differences: "",
      codec,
      status: 0,
    });
  });
});

test("the comparison notices a difference: only the codec reads NaN as null", () => {
  const { differences: found } = differences(["[NaN]"]);
  expect(found).toContain("decoded: [None] is not [nan]");
  expect(found).toContain("encoded: b'[null]' is not b'[NaN]'");
});
