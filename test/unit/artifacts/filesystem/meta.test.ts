import { anyCharacter, fc, test as propertyTest } from "../../../support/properties/property.ts";
import { describe, expect, test } from "vitest";
import { decodeMeta, encodeMeta } from "../../../../worker/artifacts/filesystem/meta.ts";

describe("a .meta file", () => {
  // Right-hand sides by Python's json.dumps({"mime_type": …}).
  test.for([
    ["text/csv", '{"mime_type": "text/csv"}'],
    ["text/x-年", '{"mime_type": "text/x-\\u5e74"}'],
    ["text/x-😀", '{"mime_type": "text/x-\\ud83d\\ude00"}'],
    ['a"b\\c/d', '{"mime_type": "a\\"b\\\\c/d"}'],
    ["\n\t\b\f\r\u0000\u001f\u007f", '{"mime_type": "\\n\\t\\b\\f\\r\\u0000\\u001f\\u007f"}'],
    ["é\u0080\u2028", '{"mime_type": "\\u00e9\\u0080\\u2028"}'],
  ] as const)("for %j is written as Python writes it", ([mimeType, text]) => {
    expect(encodeMeta({ mimeType })).toBe(text);
  });

  propertyTest.prop([fc.string({ unit: anyCharacter })])(
    "is ASCII, and gives back what was put in",
    (mimeType) => {
      const text = encodeMeta({ mimeType });
      expect(text).toMatch(/^[ -~]*$/);
      expect(decodeMeta(Buffer.from(text))).toEqual({ mimeType });
    },
  );

  test.for(['{"mime_type": null}', "{}", "[]", '"text/csv"', '{"mime_type": 5}'])(
    "that says %s stands for the default type",
    (text) => {
      expect(decodeMeta(Buffer.from(text))).toEqual({ mimeType: "application/octet-stream" });
    },
  );

  test("may hold more than the type", () => {
    const text = '{\n  "size": 5,\n  "mime_type": "text/csv"\n}\n';
    expect(decodeMeta(Buffer.from(text))).toEqual({ mimeType: "text/csv" });
  });
});
