/**
 * Streams that are pumped.
 */
import { PassThrough, Readable, Writable } from "node:stream";
import { finished } from "node:stream/promises";
import { expect, test } from "vitest";
import { pump } from "../../../../worker/support/streams/pump.ts";

const bytes = (length: number, value: number): Buffer =>
  Buffer.from(new ArrayBuffer(length)).fill(value);

test("every byte arrives in its order, then the end", async () => {
  const chunks = [bytes(3, 1), bytes(100_000, 2), bytes(0, 0), bytes(5, 3)];
  const whole = Buffer.concat(chunks);
  const seen: number[] = [];
  const read: Buffer[] = [];
  const to = new Writable({
    write(chunk: Buffer, _encoding, done) {
      read.push(Buffer.from(chunk));
      done();
    },
  });
  pump(Readable.from(chunks, { objectMode: false }), to, ({ byteLength }) => seen.push(byteLength));
  await finished(to);
  expect(Buffer.concat(read).equals(whole)).toBe(true);
  expect(seen.reduce((sum, count) => sum + count)).toBe(whole.byteLength);
});

test("memory is freed when it is written, not before; the reader waits for that", async () => {
  const chunks = Array.from({ length: 4 }, (_, index) => bytes(1_000, index));
  const writing: (() => void)[] = [];
  const to = new Writable({
    highWaterMark: 1,
    write: (_chunk, _encoding, done) => void writing.push(done),
  });
  const from = Readable.from(chunks, { objectMode: false });
  const lengths = (): readonly number[] => chunks.map(({ byteLength }) => byteLength);
  pump(from, to);
  await expect.poll(() => writing.length).toBe(1);
  expect(from.isPaused()).toBe(true);
  expect(lengths()).toEqual([1_000, 1_000, 1_000, 1_000]);
  writing[0]!();
  await expect.poll(() => writing.length).toBe(2);
  expect(lengths()).toEqual([0, 1_000, 1_000, 1_000]);
  writing[1]!();
  await expect.poll(() => writing.length).toBe(3);
  writing[2]!();
  await expect.poll(() => writing.length).toBe(4);
  writing[3]!();
  await finished(to);
  expect(lengths()).toEqual([0, 0, 0, 0]);
});

test("memory of other buffers and of a write that failed is left", async () => {
  const shared = bytes(10, 1);
  const failing = bytes(10, 2);
  let written = 0;
  const to = new Writable({
    write: (_chunk, _encoding, done) => done(++written === 2 ? new Error("broken") : null),
  });
  to.on("error", () => undefined);
  pump(Readable.from([shared.subarray(0, 5), failing], { objectMode: false }), to);
  await expect(finished(to)).rejects.toThrow("broken");
  expect([shared.byteLength, failing.byteLength]).toEqual([10, 10]);
});

test("a reader that has ended ends the writer", async () => {
  const from = Readable.from([]);
  await finished(from.resume());
  const to = new PassThrough();
  pump(from, to);
  await finished(to.resume());
});
