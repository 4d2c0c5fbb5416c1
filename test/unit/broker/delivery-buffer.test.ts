/**
 * Deliveries between a connection and the consumer.
 */
import { expect, test } from "vitest";
import type { Delivery } from "../../../worker/broker/broker.ts";
import { DeliveryBuffer } from "../../../worker/broker/delivery-buffer.ts";

function delivery(topic: string, isLost = (): boolean => false): Delivery {
  return {
    topic,
    payload: Buffer.from("1"),
    redelivered: false,
    deliveryCount: 1,
    maxDeliveries: undefined,
    properties: {},
    get isLost() {
      return isLost();
    },
    settle: () => Promise.resolve(),
  };
}

const { signal: never } = new AbortController();
const end = { done: true, value: undefined };

test("deliveries come in order of arrival, to one who waits as well", async () => {
  const buffer = new DeliveryBuffer(never);
  const iterator = buffer[Symbol.asyncIterator]();
  const waiting = iterator.next();
  for (const topic of ["a", "b", "c"]) buffer.add(delivery(topic));
  const came = [await waiting, await iterator.next(), await iterator.next()];
  expect(came.map(({ value }) => (value as Delivery).topic)).toEqual(["a", "b", "c"]);
});

test("a delivery that the broker took back is skipped", async () => {
  const buffer = new DeliveryBuffer(never);
  let isLost = false;
  buffer.add(delivery("a", () => isLost));
  buffer.add(delivery("b"));
  isLost = true;
  const { value } = await buffer[Symbol.asyncIterator]().next();
  expect(value).toMatchObject({ topic: "b" });
});

test("a complete buffer hands out what arrived, and ends then", async () => {
  const buffer = new DeliveryBuffer(never);
  buffer.add(delivery("a"));
  buffer.complete();
  const topics: string[] = [];
  for await (const { topic } of buffer) topics.push(topic);
  expect(topics).toEqual(["a"]);
});

test("completion ends the wait of the consumer", async () => {
  const buffer = new DeliveryBuffer(never);
  const waiting = buffer[Symbol.asyncIterator]().next();
  buffer.complete();
  expect(await waiting).toEqual(end);
});

test("a lost connection ends the wait, and drops what arrived", async () => {
  const connection = new AbortController();
  const waiting = new DeliveryBuffer(connection.signal);
  const next = waiting[Symbol.asyncIterator]().next();
  const full = new DeliveryBuffer(connection.signal);
  full.add(delivery("a"));
  connection.abort();
  expect(await next).toEqual(end);
  expect(await full[Symbol.asyncIterator]().next()).toEqual(end);
});
