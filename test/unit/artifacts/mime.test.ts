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

  test.for([
    ["main.ts", "text/x-typescript"],
    ["App.TSX", "text/x-typescript"],
    ["lib.mjs", "text/javascript"],
    ["lib.cjs", "text/javascript"],
    ["tool.py", "text/x-python"],
    ["logs.tgz", "application/gzip"],
    ["logs.zst", "application/zstd"],
    ["main.rs", "text/x-rust"],
    ["a.cpp", "text/x-c++"],
    ["rows.jsonl", "text/jsonl"],
    ["rows.ndjson", "text/x-ndjson"],
    ["rows.tsv", "text/tab-separated-values"],
    ["notes.md", "text/markdown"],
    ["conf.yaml", "text/yaml"],
    ["conf.yml", "text/yaml"],
    ["pyproject.toml", "text/x-toml"],
    ["fix.patch", "text/x-diff"],
    ["graph.dot", "text/vnd.graphviz"],
    ["notebook.ipynb", "application/x-ipynb+json"],
    ["map.geojson", "application/geo+json"],
    ["rows.parquet", "application/vnd.apache.parquet"],
    ["rows.feather", "application/vnd.apache.arrow.file"],
    ["rows.sqlite", "application/vnd.sqlite3"],
    ["rows.xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"],
    ["a.avif", "image/avif"],
    ["a.webp", "image/webp"],
    ["a.svg", "image/svg+xml"],
    ["a.mp4", "video/mp4"],
  ] as const)("of %s is what tools mean by it", ([filename, mimeType]) => {
    expect(guessMimeType(filename)).toBe(mimeType);
  });

  test.for(["", "json", ".json", "a.", "a.unheard-of", "a.__proto__", "a.constructor", "a.png "])(
    "of %j is unknown",
    (filename) => {
      expect(guessMimeType(filename)).toBe("application/octet-stream");
    },
  );
});
