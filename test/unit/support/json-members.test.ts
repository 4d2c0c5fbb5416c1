/**
 * Objects that are taken apart into the texts of their members.
 */
import { fc, test } from "../../support/properties/property.ts";
import { describe, expect } from "vitest";
import { sliceMembers } from "../../../worker/support/json/members.ts";
import { timesTheWork } from "../../support/cpu-time.ts";

const bytes = (text: string): Buffer => Buffer.from(text);
const text = (line: Uint8Array | undefined): string | undefined =>
  line && Buffer.from(line).toString();

describe("members of an object", () => {
  test.prop([fc.dictionary(fc.string(), fc.jsonValue(), { maxKeys: 20 }), fc.nat(4)])(
    "are found with their text, whatever the values are",
    (object, indent) => {
      const members = sliceMembers(bytes(JSON.stringify(object, null, indent)));
      const parsed = [...(members ?? [])].map(([name, value]) => [
        name,
        JSON.parse(text(value)!) as unknown,
      ]);
      expect(Object.fromEntries(parsed)).toEqual(JSON.parse(JSON.stringify(object)));
    },
  );

  const piece = fc.constantFrom("\\", '"', '\\"', "a", "b".repeat(63), "c".repeat(200), "€");
  test.prop([fc.array(piece, { maxLength: 12 })])(
    "are found after strings of any make",
    (pieces) => {
      const value = pieces.join("");
      const members = sliceMembers(bytes(JSON.stringify({ [value]: value, after: [value, 7] })));
      expect(text(members?.get(value))).toBe(JSON.stringify(value));
      expect(text(members?.get("after"))).toBe(JSON.stringify([value, 7]));
    },
  );

  test("keep their text to the letter", () => {
    const members = sliceMembers(
      bytes(String.raw` { "a" : [ 1.0, NaN ] ,"p\u0061y":"\\\"},",	"b":1e400} `),
    );
    expect([...(members ?? [])].map(([name, value]) => [name, text(value)])).toEqual([
      ["a", "[ 1.0, NaN ]"],
      ["pay", String.raw`"\\\"},"`],
      ["b", "1e400"],
    ]);
  });

  test("of one name: the last wins", () => {
    expect(text(sliceMembers(bytes('{"a":1,"a":2}'))?.get("a"))).toBe("2");
  });

  test.each([
    "",
    "null",
    "[]",
    "1",
    '"a"',
    "{",
    '{"a"',
    '{"a":',
    '{"a":1',
    '{"a":"x',
    '{"a":1,}',
    '{"a" 1}',
    "{a:1}",
    '{"a":1}}',
    '{"a":1} x',
    `{${Array.from({ length: 65 }, (_, index) => `"${index}":1`).join()}}`,
  ])("are not found in %j", (json) => {
    expect(sliceMembers(bytes(json))).toBeUndefined();
  });

  test.prop([fc.uint8Array({ maxLength: 200 })])("never throw on any bytes", (noise) => {
    sliceMembers(noise);
    sliceMembers(Buffer.concat([bytes('{"'), noise]));
  });

  test("of a long string full of escapes are found in linear time", () => {
    for (const run of ['\\"', "\\", '"', `"${"a".repeat(100)}`]) {
      const slice = (length: number) => {
        const json = bytes(JSON.stringify({ a: run.repeat(length / run.length), b: 1 }));
        return (): void => expect(text(sliceMembers(json)?.get("b"))).toBe("1");
      };
      expect(timesTheWork(slice(20_000), slice(200_000))).toBeLessThan(40);
      slice(4_000_000)();
    }
  });
});
