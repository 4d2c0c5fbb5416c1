/**
 * Streams of bytes that are cut into lines.
 */
import { anyCharacter, fc, test } from "../../support/properties/property.ts";
import { describe, expect } from "vitest";
import { LineSplitter } from "../../../worker/support/text/byte-lines.ts";

const bytes = (text: string): Buffer => Buffer.from(text);

/** Pieces of a stream, cut at arbitrary places. */
function cut(stream: Buffer, places: readonly number[]): Buffer[] {
  const cuts = [0, ...places.map((place) => place % (stream.length + 1)), stream.length];
  const sorted = cuts.toSorted((a, b) => a - b);
  return sorted.slice(1).map((end, index) => stream.subarray(sorted[index], end));
}

describe("lines", () => {
  test.prop([
    fc.array(fc.string({ unit: anyCharacter }).map((one) => one.replaceAll("\n", ""))),
    fc.array(fc.nat()),
  ])("come out as they went in, however the stream is cut", (lines, places) => {
    const splitter = new LineSplitter(10_000);
    const stream = bytes(lines.map((line) => `${line}\n`).join(""));
    const out = cut(stream, places).flatMap((chunk) => splitter.push(chunk));
    expect(out.map((line) => line.kind === "line" && line.bytes)).toEqual(lines.map(bytes));
  });

  test("may come byte by byte", () => {
    const splitter = new LineSplitter(10_000);
    const line = bytes("0123456789".repeat(1_000));
    const out = Array.from(line, (byte) => splitter.push(Buffer.of(byte))).flat();
    expect([...out, ...splitter.push(bytes("\n"))]).toEqual([{ kind: "line", bytes: line }]);
  });

  test("of exactly the limit are lines, one byte more is too long", () => {
    const splitter = new LineSplitter(5);
    expect(splitter.push(bytes("12345\n"))).toEqual([{ kind: "line", bytes: bytes("12345") }]);
    expect(splitter.push(bytes("12345"))).toEqual([]);
    expect(splitter.isOverlong).toBe(false);
    expect(splitter.push(bytes("6"))).toEqual([]);
    expect(splitter.isOverlong).toBe(true);
    expect(splitter.push(bytes("7\nnext\n"))).toEqual([
      { kind: "too-long", sizeBytes: 7 },
      { kind: "line", bytes: bytes("next") },
    ]);
    expect(splitter.isOverlong).toBe(false);
  });
});
