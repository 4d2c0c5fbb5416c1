/**
 * Frames of a channel.
 */
import { Readable } from "node:stream";
import { describe, expect } from "vitest";
import { encodeFrame, readFrames, sentBelow } from "../../../../worker/gateway/proxy/frames.ts";
import type { JsonObject } from "../../../../worker/support/json/json.ts";
import { localConnection } from "../../../../worker/support/streams/local-connection.ts";
import { anyCharacter, fc, test } from "../../../support/properties/property.ts";

const maxBytes = 1_000;

describe("frames", () => {
  const anyObject = fc.dictionary(
    fc.string({ unit: anyCharacter }),
    fc.jsonValue({ maxDepth: 2 }),
    {
      maxKeys: 3,
      noNullPrototype: true,
    },
  );
  test.prop([fc.array(anyObject), fc.array(fc.nat())])(
    "come out as they went in, however the stream is cut",
    async (objects, places) => {
      const stream = Buffer.concat(objects.map(encodeFrame));
      const cuts = [0, ...places.map((place) => place % (stream.length + 1)), stream.length];
      const sorted = cuts.toSorted((a, b) => a - b);
      const chunks = sorted.slice(1).map((end, index) => stream.subarray(sorted[index], end));
      const read: JsonObject[] = [];
      for await (const frame of readFrames(Readable.from(chunks), 100_000)) read.push(frame);
      expect(JSON.stringify(read)).toBe(JSON.stringify(objects));
    },
  );

  test("of one chunk let others run between them", async () => {
    const order: string[] = [];
    const chunk = Buffer.concat(["1", "2", "3"].map((id) => encodeFrame({ id })));
    for await (const { id } of readFrames(Readable.from([chunk]), maxBytes)) {
      order.push(id as string);
      setImmediate(() => order.push(`after ${id as string}`));
    }
    expect(order).toEqual(["1", "after 1", "2", "after 2", "3"]);
  });

  test("that are not wanted any more end the channel", async () => {
    const channel = Readable.from([encodeFrame({ id: "1" }), encodeFrame({ id: "2" })]);
    const read: JsonObject[] = [];
    for await (const frame of readFrames(channel, maxBytes)) {
      read.push(frame);
      break;
    }
    expect(read).toHaveLength(1);
    expect(channel.destroyed).toBe(true);
  });
});

describe("a wait for what is unsent", () => {
  const never = new AbortController().signal;

  test("ends when the peer has read, when the channel closes, and on abort", async () => {
    const [near, far] = localConnection();
    for (let count = 0; count < 3; count++) near.write(Buffer.alloc(maxBytes * 100));
    const reason = new Error("not wanted");
    await expect(sentBelow(maxBytes, near, AbortSignal.abort(reason))).rejects.toBe(reason);
    const controller = new AbortController();
    const waiting = sentBelow(maxBytes, near, controller.signal);
    controller.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    expect(near.listenerCount("drain")).toBe(0);
    const sent = sentBelow(maxBytes, near, never);
    far.resume();
    await sent;
    far.pause();
    for (let count = 0; count < 3; count++) near.write(Buffer.alloc(maxBytes * 100));
    const closed = sentBelow(maxBytes, near, never);
    near.destroy();
    await closed;
    await sentBelow(maxBytes, near, never);
  });
});
