/**
 * How many calls a worker holds, and what becomes of the call that the client library prefetches.
 */
import { setTimeout as pass } from "node:timers/promises";
import { describe, expect, test, vi } from "vitest";
import type { BrokerSession, Delivery } from "../../../worker/broker/broker.ts";
import { pull, textOf } from "../../conformance/broker/under-test.ts";
import { patience } from "../../support/patience.ts";
import {
  type Place,
  addressOf,
  callAll,
  defaultAddress,
  dice,
  never,
  openPlace,
  queueForEach,
} from "./place.ts";
import { keptLog } from "../../support/workers/kept-log.ts";

/** Waits until a queue has handed out so many calls that are not settled. */
async function whenUnsettled({ server }: Place, address: string, count: number): Promise<void> {
  await vi.waitFor(() => expect(server.queue(address)?.unsettled).toBe(count), patience);
}

/** Takes so many deliveries, without settling them. */
async function hold(
  deliveries: ReturnType<typeof pull>,
  count: number,
): Promise<readonly Delivery[]> {
  const held: Delivery[] = [];
  while (held.length < count) held.push(await deliveries.next());
  return held;
}

describe("a busy worker", () => {
  test("keeps one call more at most from others, where the queue has no limit", async () => {
    await using place = await openPlace({ maxUnsettled: 2 });
    await using busy = await place.broker.connect(["echo"], never);
    const deliveries = pull(busy);
    await place.call("echo", "0", "1", "2", "3", "4");
    const held = await hold(deliveries, 2);
    await whenUnsettled(place, defaultAddress, 3);
    await using free = await place.broker.connect(["echo"], never);
    const others = pull(free);
    expect(textOf(await others.next())).toBe("3");
    expect(textOf(await others.next())).toBe("4");
    await held[0]?.settle("accepted");
    expect(textOf(await deliveries.next())).toBe("2");
  });

  test("has room for one more for each that is exempt, until that is settled", async () => {
    await using place = await openPlace({ maxUnsettled: 2 });
    await using session = await place.broker.connect(["echo"], never);
    const deliveries = pull(session);
    await place.call("echo", "0", "1", "2", "3", "4", "5");
    const [first, second] = await hold(deliveries, 2);
    await whenUnsettled(place, defaultAddress, 3);
    first?.exempt?.();
    first?.exempt?.();
    expect(textOf(await deliveries.next())).toBe("2");
    await whenUnsettled(place, defaultAddress, 4);
    await first?.settle("accepted");
    await whenUnsettled(place, defaultAddress, 3);
    await second?.settle("accepted");
    expect(textOf(await deliveries.next())).toBe("3");
    await whenUnsettled(place, defaultAddress, 3);
  });

  test("holds the limit of each queue, and one call more of each", async () => {
    await using place = await openPlace({
      queueOf: (tool) => (tool === "heavy" ? "heavy" : "default"),
      queues: new Map([
        ["default", 3],
        ["heavy", 1],
      ]),
    });
    await using session = await place.broker.connect(["a", "b", "heavy"], never);
    const deliveries = pull(session);
    await Promise.all(["a", "b", "heavy"].map((tool) => place.call(tool, "1", "2", "3")));
    const held = await hold(deliveries, 4);
    expect(held.map(({ queue }) => queue).toSorted()).toEqual([
      ...["default", "default", "default"],
      "heavy",
    ]);
    await whenUnsettled(place, defaultAddress, 4);
    await whenUnsettled(place, addressOf("heavy"), 2);
    // What the broker sent before this confirmation has arrived with it.
    await session.publish({ topic: "t", payload: Buffer.from("1") }, never);
    expect(place.server.queue(defaultAddress)?.unsettled).toBe(4);
    expect(place.server.queue(addressOf("heavy"))?.unsettled).toBe(2);
  });

  test("holds no more than its limit through several flows", async () => {
    await using place = await openPlace({ maxUnsettled: 40 });
    await using session = await place.broker.connect(["echo"], never);
    const held: Delivery[] = [];
    const pulling = (async () => {
      for await (const delivery of session.deliveries) held.push(delivery);
    })();
    const calls = await callAll(place, ["echo"], 50);
    await whenUnsettled(place, defaultAddress, 42);
    expect(place.server.queue(defaultAddress)?.consumers).toHaveLength(2);
    expect(held).toHaveLength(40);
    for (let n = 0; n < calls.length; n++) {
      await vi.waitFor(() => expect(held.length).toBeGreaterThan(n), patience);
      await held[n]!.settle("accepted");
    }
    expect(held.map(textOf).toSorted()).toEqual(calls.toSorted());
    await session.pause();
    await pulling;
  });

  test("that is paused lets its queue go when its last call is settled", async () => {
    await using place = await openPlace();
    await using session = await place.broker.connect(["echo"], never);
    const deliveries = pull(session);
    await place.call("echo", "1", "2");
    const [first, second] = await hold(deliveries, 2);
    await session.pause();
    await first?.settle("accepted");
    expect(place.server.queue(defaultAddress)?.consumers).toHaveLength(1);
    await second?.settle("failed");
    expect(place.server.queue(defaultAddress)).toMatchObject({
      consumers: [],
      depth: 1,
      settlements: { accepted: 1, failed: 1, rejected: 0 },
    });
  });
});

describe("a call that the library prefetched", () => {
  type End = (session: BrokerSession, place: Place, running: Delivery) => unknown;
  const ends: readonly { readonly how: string; readonly end: End }[] = [
    { how: "loses its connection", end: (_session, { server }) => server.dropAll() },
    { how: "is closed", end: (session) => session[Symbol.asyncDispose]() },
    {
      how: "is paused and ends its last call",
      async end(session, _place, running) {
        await session.pause();
        await running.settle("accepted");
      },
    },
    {
      how: "loses the queue, and then the connection",
      async end(session, { server }) {
        server.unbindAll(defaultAddress);
        server.dropAll();
        await session.closed;
      },
    },
  ];

  test.each(ends)("is there for others when its worker $how", async ({ end }) => {
    await using place = await openPlace({ maxUnsettled: 1 });
    await using busy = await place.broker.connect(["echo"], never);
    await place.call("echo", "running");
    const [running] = await hold(pull(busy), 1);
    await place.call("echo", "prefetched");
    await whenUnsettled(place, defaultAddress, 2);
    await end(busy, place, running!);
    await using free = await place.broker.connect(["echo"], never);
    const others = pull(free);
    for (;;) {
      const delivery = await others.next();
      expect(delivery.deliveryCount).toBe(2);
      await delivery.settle("accepted");
      if (textOf(delivery) === "prefetched") break;
    }
  });
});

test(
  "calls that two workers hold for any time are delivered and end once each",
  { tags: "full" },
  async () => {
    const log = keptLog();
    const three = ["a", "b", "c"];
    await using place = await openPlace({ log, ...queueForEach(three, 2) });
    const dead = vi.fn();
    place.server.events.on("dead", dead);
    const counts = new Set<number>();
    place.server.events.on("delivered", ({ deliveryCount }) => counts.add(deliveryCount));
    await using one = await place.broker.connect(three, never);
    await using other = await place.broker.connect(three, never);
    let lost = 0;
    for (const { closed } of [one, other])
      void closed.then(({ reason }) => (lost += +(reason === "lost")));
    const roll = dice(7);
    const held: Delivery[] = [];
    const collect = async ({ deliveries }: BrokerSession): Promise<void> => {
      for await (const delivery of deliveries) held.push(delivery);
    };
    void collect(one);
    void collect(other);
    const left = new Set(await callAll(place, three, 300));
    while (left.size > 0) {
      await pass(roll(10));
      for (let some = roll(held.length + 1); some > 0; some--) {
        const [delivery] = held.splice(roll(held.length), 1);
        expect(left.delete(textOf(delivery!))).toBe(true);
        await delivery!.settle("accepted");
      }
    }
    await vi.waitFor(() => {
      for (const tool of three) expect(place.server.queue(addressOf(tool))?.depth).toBe(0);
    }, patience);
    expect([...counts]).toEqual([1]);
    expect(dead).not.toHaveBeenCalled();
    expect(lost).toBe(0);
    expect(log.events.filter((event) => event !== "queue.created")).toEqual([]);
  },
);
