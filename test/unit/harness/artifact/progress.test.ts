import { Writable } from "node:stream";
import { describe, expect, test } from "vitest";
import { Progress, quantity } from "../../../../harness/artifact/progress.ts";
import { Screen } from "../../../../harness/invoke/screen.ts";
import { systemClock } from "../../../../worker/support/clock.ts";

const KiB = 1024;

/** A screen, what was written to it, and a clock that the transfer moves. */
function createTerminal(isTTY: boolean) {
  const written: string[] = [];
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      written.push(chunk.toString());
      done();
    },
  });
  let nowMs = 0;
  const clock = { ...systemClock, monotonicMs: () => nowMs };
  const transfer = async function* (chunkCount: number, msPerChunk: number) {
    for (let count = 0; count < chunkCount; count++) {
      nowMs += msPerChunk;
      yield Buffer.alloc(KiB);
    }
  };
  return { screen: new Screen(Object.assign(stream, { isTTY })), clock, transfer, written };
}

async function show(
  { screen, clock, transfer, written }: ReturnType<typeof createTerminal>,
  chunkCount: number,
  msPerChunk: number,
  sizeBytes?: number,
): Promise<readonly string[]> {
  using progress = new Progress(screen, clock);
  let bytes = 0;
  for await (const chunk of progress.follow(transfer(chunkCount, msPerChunk), sizeBytes))
    bytes += chunk.byteLength;
  expect(bytes).toBe(chunkCount * KiB);
  return [...written];
}

describe("the progress of a transfer", () => {
  test("is rewritten in place on a terminal, at most ten times a second", async () => {
    const written = await show(createTerminal(true), 300, 10, 300 * KiB);
    expect(written).toHaveLength(21);
    expect(written[0]).toBe("\r\u001b[K33 % of 300.0 KiB, 100.0 KiB/s");
    expect(written.at(-1)).toBe("\r\u001b[K100 % of 300.0 KiB, 100.0 KiB/s");
  });

  test("is told in bytes where the size is not known", async () => {
    const written = await show(createTerminal(true), 2, 1_000);
    expect(written).toEqual(["\r\u001b[K1.0 KiB, 1.0 KiB/s", "\r\u001b[K2.0 KiB, 1.0 KiB/s"]);
  });

  test("is cleared at the end", async () => {
    const terminal = createTerminal(true);
    await show(terminal, 2, 1_000, 2 * KiB);
    expect(terminal.written.at(-1)).toBe("\r\u001b[K");
  });

  test("is not shown of what is over within a second, nor where no terminal is", async () => {
    expect(await show(createTerminal(true), 9, 100, 9 * KiB)).toEqual([]);
    expect(await show(createTerminal(false), 100, 100, 100 * KiB)).toEqual([]);
  });
});

test.each([
  [0, "0 bytes"],
  [1023, "1023 bytes"],
  [1536, "1.5 KiB"],
  [3 * 1024 ** 3, "3.0 GiB"],
  [5000 * 1024 ** 4, "5000.0 TiB"],
])("%i bytes are %s", (bytes, text) => {
  expect(quantity(bytes)).toBe(text);
});
