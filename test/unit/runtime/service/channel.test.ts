/**
 * A gateway's channel inside a connection.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect } from "vitest";
import { GatewayChannel } from "../../../../worker/runtime/service/channel.ts";
import {
  maxChunkBytes,
  messageBytes,
  windowBytes,
} from "../../../../worker/runtime/service/limits.ts";
import { fc, test } from "../../../support/properties/property.ts";

/** A channel whose peer is the test. */
function channelOf() {
  const sent: Buffer[] = [];
  const taken: number[] = [];
  const channel = new GatewayChannel({
    chunk: (bytes) => void sent.push(bytes),
    taken: (bytes) => void taken.push(bytes),
  });
  return { channel, sent, taken, sentBytes: () => Buffer.concat(sent).byteLength };
}

/** Two channels whose messages arrive at once. */
function pair(): readonly [GatewayChannel, GatewayChannel] {
  const ends: GatewayChannel[] = [];
  const end = (peer: 0 | 1) =>
    new GatewayChannel({
      chunk: (bytes) => expect(ends[peer]!.receive(bytes)).toBe(true),
      taken: (bytes) => expect(ends[peer]!.grant(bytes)).toBe(true),
    });
  ends.push(end(1), end(0));
  return [ends[0]!, ends[1]!];
}

describe("a channel", () => {
  test("sends no more than a window, in chunks, and goes on as far as it is granted", () => {
    const { channel, sent, sentBytes } = channelOf();
    channel.write(Buffer.alloc(3 * windowBytes));
    const first = sentBytes();
    expect(first).toBeLessThan(windowBytes);
    expect(first).toBeGreaterThan(windowBytes - 2 * maxChunkBytes);
    expect(Math.max(...sent.map(({ byteLength }) => byteLength))).toBe(maxChunkBytes);
    expect(channel.grant(maxChunkBytes + messageBytes)).toBe(true);
    expect(sentBytes()).toBe(first + maxChunkBytes);
  });

  test("counts small messages with what they cost", () => {
    const { channel, sent } = channelOf();
    for (let count = 0; count < windowBytes / 200; count++) channel.write("x");
    expect(sent).toHaveLength(Math.floor(windowBytes / (1 + messageBytes)));
  });

  test("takes no more than a window that nobody reads", () => {
    const { channel, taken } = channelOf();
    const chunk = Buffer.alloc(maxChunkBytes);
    let count = 0;
    while (channel.receive(chunk)) count++;
    expect(count).toBe(Math.floor(windowBytes / (maxChunkBytes + messageBytes)));
    expect(taken).toEqual([]);
  });

  test("refuses a large chunk, and a grant of what was not sent", () => {
    const { channel } = channelOf();
    expect(channel.receive(Buffer.alloc(maxChunkBytes + 1))).toBe(false);
    expect(channel.grant(1)).toBe(false);
  });

  test("keeps the bound when its reader has left", async () => {
    const { channel } = channelOf();
    channel.destroy();
    await nextTurn();
    const chunk = Buffer.alloc(maxChunkBytes);
    const isKept = Array.from({ length: 20 }, () => channel.receive(chunk));
    expect(isKept.indexOf(false)).toBe(Math.floor(windowBytes / (maxChunkBytes + messageBytes)));
  });

  test.prop([fc.array(fc.integer({ min: 1, max: 400_000 }), { maxLength: 30 })], { numRuns: 20 })(
    "brings everything, in order, however it is cut",
    async (lengths) => {
      const [near, far] = pair();
      const bytes = lengths.map((length, index) => Buffer.alloc(length, index));
      for (const each of bytes) near.write(each);
      const total = lengths.reduce((sum, length) => sum + length, 0);
      const read: Buffer[] = [];
      let readBytes = 0;
      if (total > 0)
        for await (const chunk of far as AsyncIterable<Buffer>) {
          read.push(chunk);
          readBytes += chunk.byteLength;
          if (readBytes >= total) break;
        }
      expect(Buffer.concat(read).equals(Buffer.concat(bytes))).toBe(true);
    },
  );
});
