/**
 * Decoding of JSON that somebody else wrote.
 */
import { anyCharacter, fc, test as propertyTest } from "../../support/properties/property.ts";
import { describe, expect, test } from "vitest";
import {
  JsonError,
  defaultJsonLimits,
  isJsonObject,
  parseJson,
} from "../../../worker/support/json/json.ts";
import { timesTheWork } from "../../support/cpu-time.ts";

function parse(text: string, limits = defaultJsonLimits): unknown {
  return parseJson(Buffer.from(text), limits);
}

function refusal(text: string | Uint8Array, limits = defaultJsonLimits): JsonError {
  const bytes = typeof text === "string" ? Buffer.from(text) : text;
  try {
    parseJson(bytes, limits);
  } catch (error) {
    expect(error).toBeInstanceOf(JsonError);
    return error as JsonError;
  }
  throw new Error(`accepted: ${Buffer.from(bytes).toString().slice(0, 100)}`);
}

describe("a JSON document", () => {
  propertyTest.prop([fc.jsonValue({ maxDepth: 6 })])("is read as JSON.parse reads it", (value) => {
    const text = JSON.stringify(value);
    expect(parse(text)).toStrictEqual(JSON.parse(text));
  });

  propertyTest.prop([fc.json({ maxDepth: 6, stringUnit: anyCharacter }), fc.constantFrom(0, 1, 4)])(
    "is read as JSON.parse reads it, however it is spelled",
    (text, indent) => {
      const spelled = JSON.stringify(JSON.parse(text), null, indent);
      expect(parse(spelled)).toStrictEqual(JSON.parse(spelled));
    },
  );

  propertyTest.prop([fc.uint8Array({ maxLength: 200 })])(
    "of any bytes at all is read or refused with a JsonError",
    (bytes) => {
      try {
        parseJson(bytes);
      } catch (error) {
        expect(error).toBeInstanceOf(JsonError);
      }
    },
  );

  propertyTest.prop([
    fc
      .array(
        fc.constantFrom(
          ...["{", "}", "[", "]", ",", ":", '"', "\\", '\\"', "\\\\", "\\u0041", "\\ud800"],
          ...["NaN", "Infinity", "-Infinity", "-", "1", "1e999", "true", "null", " ", "\n", "é"],
          ...['"a"', '"__proto__":'],
        ),
        { maxLength: 40 },
      )
      .map((tokens) => tokens.join("")),
  ])("that almost is JSON is read or refused with a JsonError", (text) => {
    const standard = attempt(() => JSON.parse(text) as unknown);
    const ours = attempt(() => parse(text));
    if ("value" in standard) expect(ours).toStrictEqual(standard);
    else if ("error" in ours) expect(ours.error).toBeInstanceOf(JsonError);
    // Whatever we read beyond the standard, we read because of a non-finite number.
    else expect(text).toMatch(/NaN|Infinity/);
  });

  test("keeps `__proto__` and its kin as members of their own", { tags: "promise-O3" }, () => {
    const value = parse('{"__proto__":{"isAdmin":true},"constructor":1,"toString":2}') as object;
    expect(Object.keys(value)).toEqual(["__proto__", "constructor", "toString"]);
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
    expect("isAdmin" in value).toBe(false);
  });

  test("may begin with a byte order mark", () => {
    expect(parse('\ufeff{"a":1}')).toEqual({ a: 1 });
  });

  test.each(["", " ", "{", '{"a"', '{"a":}', "[1,]", "{'a':1}", "undefined", "1 2", '"\n"', "01"])(
    "that is no JSON is a syntax error: %j",
    (text) => {
      expect(refusal(text).reason).toBe("syntax");
    },
  );

  test("that is no JSON is refused without a word of its content", () => {
    const error = refusal('{"password": "hunter2", oops}');
    expect(error.message).toMatch(/^not valid JSON/);
    expect(error.message).not.toContain("hunter2");
    expect(refusal('{"a": "hunter2" "b"}').message).toBe("not valid JSON at character 16");
  });

  test.each([
    ["a lone continuation byte", [0x22, 0x80, 0x22]],
    ["a sequence that is cut off", [0x22, 0xe2, 0x82, 0x22]],
    ["an overlong slash", [0x22, 0xc0, 0xaf, 0x22]],
    ["an encoded surrogate", [0x22, 0xed, 0xa0, 0x80, 0x22]],
    ["UTF-16", [0xff, 0xfe, 0x31, 0x00]],
  ])("in bad UTF-8 is an encoding error: %s", (_name, bytes) => {
    expect(refusal(Uint8Array.from(bytes)).reason).toBe("encoding");
  });
});

function attempt<T>(action: () => T): { value: T } | { error: unknown } {
  try {
    return { value: action() };
  } catch (error) {
    return { error };
  }
}

describe("Python's non-finite numbers", () => {
  test("are read as null", () => {
    expect(parse('{"a": NaN, "b": [Infinity, -Infinity], "c": 1}')).toEqual({
      a: null,
      b: [null, null],
      c: 1,
    });
    expect(parse("NaN")).toBeNull();
  });

  test("are left alone inside strings and keys", () => {
    const text = '{"NaN": "Infinity and NaN", "quote\\"NaN": "-Infinity\\\\", "x": NaN}';
    expect(parse(text)).toEqual({
      NaN: "Infinity and NaN",
      'quote"NaN': "-Infinity\\",
      x: null,
    });
  });

  propertyTest.prop([fc.jsonValue({ maxDepth: 4, stringUnit: anyCharacter }), fc.string()])(
    "change nothing around them",
    (value, string) => {
      const around = JSON.stringify({ value, string, both: `NaN"\\${string}` });
      const text = `[${around},NaN,${around},-Infinity]`;
      const expected = JSON.parse(around) as unknown;
      expect(parse(text)).toStrictEqual([expected, null, expected, null]);
    },
  );

  test.each(["[1NaN]", "[NaN1]", "[nan]", "{NaN: 1}", "[-NaN]", "[+Infinity]", "[NaN", "NaN NaN"])(
    "do not make a document of what is none: %s",
    (text) => {
      expect(refusal(text).reason).toBe("syntax");
    },
  );

  test("are found behind a string of any length", () => {
    const text = "x".repeat(9_000_000);
    expect(parse(`["${text}", NaN]`)).toEqual([text, null]);
  });

  test("cost no more than one look at a string that is never closed", () => {
    const refuse = (escapes: number) => {
      const text = `NaN "${'\\"'.repeat(escapes)}`;
      return (): void => expect(refusal(text).reason).toBe("syntax");
    };
    // An expression that starts over at each escaped quote takes 400 times as much.
    expect(timesTheWork(refuse(2_000), refuse(40_000))).toBeLessThan(80);
  });
});

describe("the bounds of a document", () => {
  const nested = (depth: number): string => "[".repeat(depth) + "]".repeat(depth);

  test("allow exactly as many levels as they say", () => {
    expect(parse(nested(100))).toBeInstanceOf(Array);
    const error = refusal(nested(101));
    expect(error.reason).toBe("too-deep");
    expect(error.message).toBe("nested deeper than 100 levels");
    expect(refusal('{"a":{"b":{}}}', { depth: 2, values: 10 }).reason).toBe("too-deep");
  });

  test("stop a document of a million levels before it is parsed", { tags: "promise-O3" }, () => {
    expect(refusal(nested(1_000_000)).reason).toBe("too-deep");
    expect(refusal('{"a":'.repeat(1_000_000)).reason).toBe("too-deep");
  });

  test("count values, whatever container they are in", () => {
    const limits = { depth: 3, values: 6 };
    expect(parse("[1,2,3,4]", limits)).toHaveLength(4);
    const error = refusal("[1,2,3,4,5,6,7]", limits);
    expect(error.reason).toBe("too-many-values");
    expect(error.message).toBe("more than 6 values");
    expect(refusal('{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6}', limits).reason).toBe("too-many-values");
    expect(refusal("[[],[],[],[]]", limits).reason).toBe("too-many-values");
  });

  test("do not count brackets and commas inside strings", () => {
    const limits = { depth: 1, values: 4 };
    expect(parse('["[[[[,,,,{{{{", "\\"[[,,", "\\\\"]', limits)).toHaveLength(3);
    // The string is closed before the brackets.
    expect(refusal('["\\\\",[[]]]', limits).reason).toBe("too-deep");
  });

  test("let the largest ordinary results pass", () => {
    const rows = Array.from({ length: 40_000 }, (_, row) => ({ row, name: `row ${row}` }));
    expect(parse(JSON.stringify(rows))).toHaveLength(40_000);
  });

  propertyTest.prop([fc.jsonValue({ maxDepth: 6 }), fc.nat(12), fc.nat(40)])(
    "let through only what is within them",
    (value, depth, values) => {
      const limits = { depth, values };
      const result = attempt(() => parse(JSON.stringify(value), limits));
      const isWithin = depthOf(value) <= depth && valuesIn(value) <= values;
      if ("value" in result) expect(isWithin).toBe(true);
      // Counting is from above, by at most one for each container and one for the document.
      else if (depthOf(value) <= depth) expect(valuesIn(value) * 2 + 1).toBeGreaterThan(values);
    },
  );
});

function depthOf(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
}

function valuesIn(value: unknown): number {
  if (typeof value !== "object" || value === null) return 1;
  return 1 + Object.values(value).reduce((sum: number, member) => sum + valuesIn(member), 0);
}

describe("a JSON object", () => {
  test("is neither null nor a list nor a plain value", () => {
    expect([{}, { a: 1 }].every(isJsonObject)).toBe(true);
    expect([null, [], "text", 1, true, undefined].some(isJsonObject)).toBe(false);
  });
});
