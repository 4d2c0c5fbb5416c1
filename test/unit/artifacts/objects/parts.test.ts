/**
 * Contents that are cut into parts, and the memory that all of them take.
 */
import { Readable } from "node:stream";
import { fc, test as propertyTest } from "../../../support/properties/property.ts";
import { describe, expect, test } from "vitest";
import { PartBuffers } from "../../../../worker/artifacts/objects/part-buffers.ts";
import { readWhole, sendInParts } from "../../../../worker/artifacts/objects/parts.ts";
import { artifactKey } from "../../../../worker/artifacts/scope.ts";

const never = new AbortController().signal;
const key = artifactKey({ root: "ns", userId: "ann", sessionId: "web-1" }, "a.bin");

function contentOf(bytes: Buffer, buffers: PartBuffers) {
  const open = () => Readable.from([bytes], { objectMode: false });
  return { source: { sizeBytes: bytes.byteLength, open }, key, buffers };
}

describe("parts", () => {
  propertyTest.prop([
    fc.uint8Array({ maxLength: 50 }),
    fc.integer({ min: 1, max: 20 }),
    fc.integer({ min: 1, max: 4 }),
  ])("are the content, in order, and none but the last is shorter", async (bytes, size, atOnce) => {
    const buffers = new PartBuffers({ maxOfContent: atOnce, max: 4, smallBytes: 0 });
    const parts: Buffer[] = [];
    const send = async (part: Buffer): Promise<void> => {
      parts.push(Buffer.from(part));
      await new Promise(setImmediate);
    };
    await sendInParts(contentOf(Buffer.from(bytes), buffers), size, send, never);
    expect(Buffer.concat(parts)).toEqual(Buffer.from(bytes));
    expect(parts).toHaveLength(Math.max(1, Math.ceil(bytes.length / size)));
  });

  test("are sent several at once, within what all contents may have", async () => {
    const buffers = new PartBuffers({ maxOfContent: 3, max: 4, smallBytes: 0 });
    let [sending, most] = [0, 0];
    const perContent: number[] = [];
    const sendAll = async (index: number): Promise<void> => {
      let own = 0;
      const send = async (): Promise<void> => {
        most = Math.max(most, ++sending);
        perContent[index] = Math.max(perContent[index] ?? 0, ++own);
        await new Promise(setImmediate);
        [sending, own] = [sending - 1, own - 1];
      };
      await sendInParts(contentOf(Buffer.alloc(20), buffers), 1, send, never);
    };
    await Promise.all([sendAll(0), sendAll(1), sendAll(2)]);
    expect(most).toBe(4);
    expect(Math.max(...perContent)).toBe(3);
    await sendAll(3);
    expect(perContent[3]).toBe(3);
  });

  test("end with the first that fails, whose error is the result, when none is under way", async () => {
    const buffers = new PartBuffers({ maxOfContent: 2, max: 2, smallBytes: 0 });
    const ended: string[] = [];
    let calls = 0;
    const send = async (_part: Buffer, signal: AbortSignal): Promise<void> => {
      if (++calls === 2) throw new Error("refused");
      await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      ended.push("the other");
    };
    const sending = sendInParts(contentOf(Buffer.alloc(9), buffers), 1, send, never);
    await expect(sending).rejects.toThrow("refused");
    expect([calls, ended]).toEqual([2, ["the other"]]);
  });
});

test("a content in one buffer keeps others but small ones waiting until it is disposed", async () => {
  const buffers = new PartBuffers({ maxOfContent: 1, max: 1, smallBytes: 2 });
  const first = await readWhole(contentOf(Buffer.from("one"), buffers), never);
  const second = readWhole(contentOf(Buffer.from("two"), buffers), never);
  const abort = AbortSignal.abort(new Error("over"));
  await expect(readWhole(contentOf(Buffer.from("three"), buffers), abort)).rejects.toThrow("over");
  expect(first.content.toString()).toBe("one");
  using small = await readWhole(contentOf(Buffer.from("1"), buffers), never);
  expect(small.content.toString()).toBe("1");
  first[Symbol.dispose]();
  using read = await second;
  expect(read.content.toString()).toBe("two");
});
