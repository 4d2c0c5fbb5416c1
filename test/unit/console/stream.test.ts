/** How the page reads its event stream. */
import { expect, test } from "vitest";
import { type StreamEvent, eventsOf } from "../../../console/server/events.ts";
import { anyCharacter, fc, test as property } from "../../support/properties/property.ts";

/** A body that comes in these pieces. */
function bodyOf(...pieces: readonly Uint8Array[]): ReadableStream<Uint8Array<ArrayBuffer>> {
  return ReadableStream.from(pieces.map((piece) => new Uint8Array(piece)));
}

async function readAll(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
): Promise<readonly StreamEvent[]> {
  const events: StreamEvent[] = [];
  for await (const event of eventsOf(body)) events.push(event);
  return events;
}

property.prop([fc.array(fc.string({ unit: anyCharacter })), fc.array(fc.nat(400))])(
  "events come whole and in order, wherever the network cuts them",
  async (texts, cuts) => {
    const events = texts.map((text, at) => ({ name: `n${at}`, data: JSON.stringify({ text }) }));
    const body = events.map(({ name, data }) => `event: ${name}\ndata: ${data}\n\n`).join("");
    const bytes = new TextEncoder().encode(body);
    const places = [0, ...cuts, bytes.length].sort((a, b) => a - b);
    const pieces = places.slice(1).map((end, at) => bytes.slice(places[at], end));
    expect(await readAll(bodyOf(...pieces))).toEqual(events);
  },
);

test("an event without its end is none", async () => {
  const bytes = new TextEncoder().encode("event: a\ndata: 1\n\nevent: b\ndata: 2\n");
  expect(await readAll(bodyOf(bytes))).toEqual([{ name: "a", data: "1" }]);
});

test("a stream that breaks off rejects", async () => {
  const broken = new ReadableStream<Uint8Array<ArrayBuffer>>({
    start: (controller) => controller.error(new Error("lost")),
  });
  await expect(readAll(broken)).rejects.toThrow("lost");
});
