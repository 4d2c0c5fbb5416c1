/**
 * Calls that go on although their connection is lost: what permits they withhold from the next one.
 */
import { describe, expect, test } from "vitest";
import type { Delivery } from "../../../worker/broker/broker.ts";
import { DeliveryTracker, noUnsettledCalls } from "../../../worker/broker/delivery-tracker.ts";

/** The next connection's consumer of a queue, which takes all permits that are released. */
function consumerOf(tracker: DeliveryTracker, limit: number, queue = "default") {
  const consumer = { permits: 0 };
  consumer.permits = tracker.permitsOf(queue, limit, () => consumer.permits++);
  return consumer;
}

/** A connection that delivers so many calls, and does not end. */
async function* calls(
  count: number,
  queue = "default",
  outcomes: string[] = [],
): AsyncGenerator<Delivery, void> {
  for (let n = 0; n < count; n++) {
    yield {
      topic: "tool/echo",
      queue,
      payload: Buffer.from(`${n}`),
      redelivered: false,
      deliveryCount: 1,
      maxDeliveries: undefined,
      properties: {},
      settle: (outcome) => Promise.resolve(void outcomes.push(`${n} ${outcome}`)),
    };
  }
  await new Promise(() => undefined);
}

/** What the connection of the moment delivers next. */
async function pulled(
  tracker: DeliveryTracker,
  count: number,
  queue?: string,
): Promise<readonly Delivery[]> {
  const followed = tracker.follow(calls(count, queue));
  const deliveries: Delivery[] = [];
  while (deliveries.length < count) deliveries.push((await followed.next()).value as Delivery);
  return deliveries;
}

describe("calls of a lost connection", () => {
  test("withhold permits until they are settled, but for one", async () => {
    const tracker = new DeliveryTracker(true);
    const deliveries = await pulled(tracker, 4);
    tracker.connectionLost();
    const consumer = consumerOf(tracker, 10);
    const permits = [consumer.permits];
    for (const delivery of deliveries) {
      await delivery.settle("accepted");
      await delivery.settle("failed");
      permits.push(consumer.permits);
    }
    expect(permits).toEqual([7, 8, 9, 10, 10]);
  });

  test("that are as many as the limit, or more, leave one permit for those that come again", async () => {
    const tracker = new DeliveryTracker(true);
    const deliveries = await pulled(tracker, 5);
    tracker.connectionLost();
    const consumer = consumerOf(tracker, 3);
    const permits = [consumer.permits];
    for (const delivery of deliveries) {
      await delivery.settle("accepted");
      permits.push(consumer.permits);
    }
    expect(permits).toEqual([1, 1, 1, 2, 3, 3]);
  });

  test("withhold none of another queue", async () => {
    const tracker = new DeliveryTracker(true);
    const [heavy] = await pulled(tracker, 3, "heavy");
    await pulled(tracker, 2);
    tracker.connectionLost();
    const consumers = ["default", "heavy", "other"].map((queue) => consumerOf(tracker, 5, queue));
    expect(consumers.map(({ permits }) => permits)).toEqual([4, 3, 5]);
    await heavy?.settle("accepted");
    expect(consumers.map(({ permits }) => permits)).toEqual([4, 4, 5]);
  });

  test("withhold permits of the last connection alone", async () => {
    const tracker = new DeliveryTracker(true);
    const [first, second] = await pulled(tracker, 3);
    tracker.connectionLost();
    const failed = consumerOf(tracker, 10);
    const former = consumerOf(tracker, 10);
    await first?.settle("accepted");
    tracker.connectionLost();
    const last = consumerOf(tracker, 10);
    await second?.settle("accepted");
    expect([failed, former, last].map(({ permits }) => permits)).toEqual([8, 9, 10]);
  });

  test("that were settled before withhold none, and nor do those of the next connection", async () => {
    const tracker = new DeliveryTracker(true);
    const [settled, ...lost] = await pulled(tracker, 3);
    await settled?.settle("accepted");
    tracker.connectionLost();
    const consumer = consumerOf(tracker, 10);
    const [next] = await pulled(tracker, 1);
    expect(consumer.permits).toBe(9);
    await next?.settle("accepted");
    expect(consumer.permits).toBe(9);
    await lost[0]?.settle("accepted");
    expect(consumer.permits).toBe(10);
  });

  test("that are delivered when it is lost already are counted with them", async () => {
    const tracker = new DeliveryTracker(true);
    const followed = tracker.follow(calls(3));
    await followed.next();
    tracker.connectionLost();
    await followed.next();
    await followed.next();
    expect(consumerOf(tracker, 10).permits).toBe(8);
  });

  test("are lost from then on", async () => {
    const tracker = new DeliveryTracker(true);
    const [former] = await pulled(tracker, 1);
    expect(former?.isLost).toBe(false);
    tracker.connectionLost();
    const [next] = await pulled(tracker, 1);
    expect([former?.isLost, next?.isLost]).toEqual([true, false]);
  });

  test("are not lost where the broker redelivers none", async () => {
    const tracker = new DeliveryTracker(false);
    const [former] = await pulled(tracker, 1);
    tracker.connectionLost();
    expect(former?.isLost).toBe(false);
  });

  test("are settled where they came from", async () => {
    const outcomes: string[] = [];
    const tracker = new DeliveryTracker(true);
    const { value } = await tracker.follow(calls(1, "default", outcomes)).next();
    await (value as Delivery).settle("failed");
    expect(outcomes).toEqual(["0 failed"]);
  });
});

test("the first connection has all permits", () => {
  const release = (): void => expect.unreachable();
  expect(noUnsettledCalls.permitsOf("default", 5, release)).toBe(5);
  expect(new DeliveryTracker(true).permitsOf("default", 5, release)).toBe(5);
});
