import { describe, expect, test } from "vitest";
import { guessMimeType } from "../../../worker/artifacts/mime.ts";

describe("the MIME type of a filename", () => {
  test.for([
    ["a.json", "application/json"],
    ["a.txt", "text/plain"],
    ["a.csv", "text/csv"],
    ["a.png", "image/png"],
    ["a.jpg", "image/jpeg"],
    ["a.jpeg", "image/jpeg"],
  ] as const)("of %s is what the original says", ([filename, mimeType]) => {
    expect(guessMimeType(filename)).toBe(mimeType);
  });

  test.for([
    ["REPORT.CSV", "text/csv"],
    ["archive.tar.gz", "application/gzip"],
    ["page.html", "text/html"],
    ["doc.pdf", "application/pdf"],
  ] as const)("of %s has no parameters", ([filename, mimeType]) => {
    expect(guessMimeType(filename)).toBe(mimeType);
  });

  test.for(["", "json", ".json", "a.", "a.unheard-of", "a.__proto__", "a.constructor", "a.png "])(
    "of %j is unknown",
    (filename) => {
      expect(guessMimeType(filename)).toBe("application/octet-stream");
    },
  );
});
