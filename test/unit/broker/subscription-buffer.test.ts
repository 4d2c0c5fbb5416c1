/**
 * What waits for a listener: in order, and never too much.
 */
import { describe, expect, test } from "vitest";
import { SubscriptionBuffer } from "../../../worker/broker/subscription-buffer.ts";

const mebibyte = 1024 * 1024;
const message = (topic: string, sizeBytes = 0, properties = {}) => ({
  topic,
  payload: new Uint8Array(sizeBytes),
  properties,
});

/** The topics of what waits, once nothing more is to come. */
async function topicsOf(heard: SubscriptionBuffer<ReturnType<typeof message>>): Promise<string[]> {
  heard.end();
  const topics: string[] = [];
  for await (const { topic } of heard) topics.push(topic);
  return topics;
}

describe("messages that nobody pulls", () => {
  test("are kept in order, and of too many the oldest go", async () => {
    const heard = new SubscriptionBuffer<ReturnType<typeof message>>();
    for (let n = 0; n < 10_002; n++) heard.offer(message(`${n}`));
    expect(heard.dropped).toBe(2);
    const topics = await topicsOf(heard);
    expect([topics.length, topics[0], topics.at(-1)]).toEqual([10_000, "2", "10001"]);
  });

  test("are kept up to 64 MiB of payloads", { tags: "promise-B8" }, async () => {
    const heard = new SubscriptionBuffer<ReturnType<typeof message>>();
    for (let n = 0; n < 8; n++) heard.offer(message(`${n}`, 10 * mebibyte));
    expect(heard.dropped).toBe(2);
    expect(await topicsOf(heard)).toEqual(["2", "3", "4", "5", "6", "7"]);
  });

  test("are kept up to as many characters of topics and properties", () => {
    const heard = new SubscriptionBuffer<ReturnType<typeof message>>();
    const text = "x".repeat(10 * mebibyte);
    for (let n = 0; n < 4; n++) heard.offer(message(text, 0, { [text]: "" }));
    expect(heard.dropped).toBe(1);
    for (let n = 0; n < 8; n++) heard.offer(message("t", 0, { name: text }));
    expect(heard.dropped).toBe(6);
  });

  test("are one at least, however large it is", async () => {
    const heard = new SubscriptionBuffer<ReturnType<typeof message>>();
    for (const topic of ["former", "last"]) heard.offer(message(topic, 65 * mebibyte));
    expect(heard.dropped).toBe(1);
    expect(await topicsOf(heard)).toEqual(["last"]);
  });

  test("take no room any more once they are pulled", async () => {
    const heard = new SubscriptionBuffer<ReturnType<typeof message>>();
    const pulling = heard[Symbol.asyncIterator]();
    for (let n = 0; n < 20; n++) {
      heard.offer(message(`${n}`, 60 * mebibyte));
      expect((await pulling.next()).value?.topic).toBe(`${n}`);
    }
    expect(heard.dropped).toBe(0);
  });

  test("are forgotten when they are disposed of, and no more are taken", async () => {
    const heard = new SubscriptionBuffer<ReturnType<typeof message>>();
    heard.offer(message("before"));
    await heard[Symbol.asyncDispose]();
    heard.offer(message("after"));
    expect(await topicsOf(heard)).toEqual([]);
  });
});
