/**
 * How much a worker takes of the calls of many tools while its slots are busy, and what it leaves to others. The client
 * library takes a call of each queue in hand, whether it is wanted or not.
 */
import { setTimeout as pass } from "node:timers/promises";
import { describe, expect, test, vi } from "vitest";
import type { BrokerSession, Delivery } from "../../../worker/broker/broker.ts";
import { pull, textOf } from "../../conformance/broker/under-test.ts";
import { patience } from "../../support/patience.ts";
import { type SolaceGiven, solaceBroker } from "../../support/solace-options.ts";
import {
  type Place,
  callAll,
  dice,
  keptLog,
  namespace,
  never,
  openPlace,
  queueOf,
} from "./place.ts";

const tools = ["a", "b", "c", "d", "e"];
const isRepeatable = (): boolean => true;

/** Milliseconds of a call after which a worker with room for no other has let its other queues go. */
const busyMs = 700;

/** Another worker. */
function serve(
  { server }: Place,
  served: readonly string[],
  given: Partial<SolaceGiven> = {},
): Promise<BrokerSession> {
  const host = `127.0.0.1:${server.port}`;
  return solaceBroker({ host, namespace, isRepeatable, ...given }).connect(served, never);
}

/** Takes so many deliveries, without settling them. */
async function hold(session: BrokerSession, count: number): Promise<readonly Delivery[]> {
  const deliveries = pull(session);
  const held: Delivery[] = [];
  while (held.length < count) held.push(await deliveries.next());
  return held;
}

/** Waits until nobody consumes the queues of these tools. */
async function whenParked({ server }: Place, parked: readonly string[]): Promise<void> {
  await vi.waitFor(() => {
    const bound = parked.filter((tool) => server.queue(queueOf(tool))?.consumers.length !== 0);
    expect(bound).toEqual([]);
  }, patience);
}

/** How often the broker has handed out calls of a tool, by what it said of each. */
function deliveryCounts({ server }: Place, tool: string): readonly number[] {
  const counts: number[] = [];
  server.events.on("delivered", ({ queue, deliveryCount }) => {
    if (queue === queueOf(tool)) counts.push(deliveryCount);
  });
  return counts;
}

describe("a worker whose slots are busy for long", () => {
  test("gives the calls that it has in hand to another, once, and leaves those that come to it", async () => {
    await using place = await openPlace({ maxUnsettled: 2, isRepeatable });
    await using busy = await place.broker.connect(tools, never);
    await Promise.all(tools.map((tool) => place.call(tool, `${tool}1`)));
    const running = (await hold(busy, 2)).map(textOf);
    const others = tools.filter((tool) => !running.includes(`${tool}1`));
    await using free = await serve(place, tools);
    const taken = pull(free);
    const given = [await taken.next(), await taken.next(), await taken.next()];
    expect(given.map(textOf).toSorted()).toEqual(others.map((tool) => `${tool}1`));
    expect(given.map(({ deliveryCount }) => deliveryCount)).toEqual([2, 2, 2]);
    for (const tool of others) await place.call(tool, `${tool}2`);
    const came = [await taken.next(), await taken.next(), await taken.next()];
    expect(came.map(({ deliveryCount }) => deliveryCount)).toEqual([1, 1, 1]);
  });

  test("gives back what the broker sent after the call in hand as well, and no call twice", async () => {
    await using place = await openPlace({ maxUnsettled: 1, isRepeatable });
    await using busy = await place.broker.connect(["a", "b"], never);
    await place.call("a", "a1");
    await hold(busy, 1);
    const counts = deliveryCounts(place, "b");
    await place.call("b", "1", "2", "3", "4", "5");
    await whenParked(place, ["b"]);
    expect(counts).toEqual([1, 1, 1]);
    await using free = await serve(place, ["b"], { maxUnsettled: 5 });
    const given = await hold(free, 5);
    expect(given.map(textOf)).toEqual(["1", "2", "3", "4", "5"]);
    expect(given.map(({ deliveryCount }) => deliveryCount)).toEqual([2, 2, 2, 1, 1]);
  });

  test("takes from every queue again when it has room", async () => {
    await using place = await openPlace({ maxUnsettled: 2, isRepeatable });
    await using session = await place.broker.connect(tools, never);
    const deliveries = pull(session);
    await place.call("a", "1", "2");
    const running = [await deliveries.next(), await deliveries.next()];
    await whenParked(place, tools.slice(1));
    for (const tool of tools.slice(1)) await place.call(tool, tool);
    await running[0]!.settle("accepted");
    for (const _ of tools.slice(1)) {
      const delivery = await deliveries.next();
      expect(delivery.deliveryCount).toBe(1);
      await delivery.settle("accepted");
    }
    // Nobody is called: all queues are looked into, and stay bound.
    await vi.waitFor(() => {
      const bound = tools.map((tool) => place.server.queue(queueOf(tool))?.consumers.length);
      expect(bound).toEqual([1, 1, 1, 1, 1]);
    }, patience);
  });

  test(
    "has calls of each queue run in turn, and none come more than twice",
    { tags: "full" },
    async () => {
      const three = ["a", "b", "c"];
      await using place = await openPlace({ maxUnsettled: 1, isRepeatable });
      await using session = await place.broker.connect(three, never);
      const deliveries = pull(session);
      const calls = await callAll(place, three, 12);
      const seen: string[] = [];
      const turns: string[] = [];
      while (seen.length < calls.length) {
        const delivery = await deliveries.next();
        expect(delivery.deliveryCount).toBeLessThanOrEqual(2);
        seen.push(textOf(delivery));
        turns.push(delivery.topic.slice(-1));
        // As long as it takes to have the other queues let go.
        if (seen.length < 8) await pass(busyMs);
        await delivery.settle("accepted");
      }
      expect(seen.toSorted()).toEqual(calls.toSorted());
      for (const tool of three) {
        expect(turns.slice(0, 4)).toContain(tool);
        expect(turns.slice(0, 8).filter((turn) => turn === tool).length).toBeGreaterThanOrEqual(2);
      }
    },
  );

  test("keeps a call that was delivered before, and runs it when it has room", async () => {
    await using place = await openPlace({ maxUnsettled: 1, isRepeatable });
    {
      await using gone = await place.broker.connect(["b"], never);
      await place.call("b", "b1");
      await hold(gone, 1);
    }
    await using session = await place.broker.connect(["a", "other"], never);
    const deliveries = pull(session);
    await place.call("a", "a1");
    const running = await deliveries.next();
    const counts = deliveryCounts(place, "b");
    await session.serve("b", never);
    await whenParked(place, ["other"]);
    await using free = await serve(place, ["b", "other"]);
    await place.call("other", "free");
    // By now the busy worker has looked at what it has.
    expect((await hold(free, 1)).map(textOf)).toEqual(["free"]);
    await vi.waitFor(() => expect(place.server.queue(queueOf("b"))?.unsettled).toBe(1), patience);
    await running.settle("accepted");
    const kept = await deliveries.next();
    expect([textOf(kept), kept.deliveryCount, counts]).toEqual(["b1", 2, [2]]);
  });

  test("keeps a call that came back from another after the one in hand, and gives that one back", async () => {
    await using place = await openPlace({ maxUnsettled: 1, isRepeatable });
    const gone = await place.broker.connect(["b"], never);
    await place.call("b", "b1");
    await hold(gone, 1);
    await using session = await place.broker.connect(["a", "other"], never);
    const deliveries = pull(session);
    await place.call("a", "a1");
    const running = await deliveries.next();
    // The other one has a call in hand as well, which is none of ours.
    await place.call("b", "b2");
    await session.serve("b", never);
    await place.call("b", "b3");
    await vi.waitFor(() => expect(place.server.queue(queueOf("b"))?.unsettled).toBe(3), patience);
    const counts = deliveryCounts(place, "b");
    await gone[Symbol.asyncDispose]();
    await whenParked(place, ["other"]);
    // "b1" is kept; "b2" or "b3" is in hand again.
    await vi.waitFor(() => expect(place.server.queue(queueOf("b"))?.unsettled).toBe(2), patience);
    await running.settle("accepted");
    const order: string[] = [];
    while (order.length < 3) {
      const delivery = await deliveries.next();
      expect(delivery.deliveryCount).toBe(2);
      order.push(textOf(delivery));
      await delivery.settle("accepted");
    }
    expect(order).toEqual(["b1", "b2", "b3"]);
    expect(Math.max(...counts)).toBe(2);
  });

  test("hands out what it has kept when it is paused", async () => {
    await using place = await openPlace({ maxUnsettled: 1, isRepeatable });
    {
      await using gone = await place.broker.connect(["b"], never);
      await place.call("b", "b1");
      await hold(gone, 1);
    }
    await using session = await place.broker.connect(["a", "other"], never);
    const deliveries = pull(session);
    await place.call("a", "a1");
    const running = await deliveries.next();
    await session.serve("b", never);
    await whenParked(place, ["other"]);
    await pass(busyMs);
    await session.pause();
    await running.settle("accepted");
    expect(textOf(await deliveries.next())).toBe("b1");
    await expect(deliveries.next()).rejects.toThrow("ended");
  });

  test("makes a queue again that was deleted while it was let go", async () => {
    await using place = await openPlace({ maxUnsettled: 1, isRepeatable });
    await using session = await place.broker.connect(["a", "b"], never);
    const deliveries = pull(session);
    await place.call("a", "a1");
    const running = await deliveries.next();
    await whenParked(place, ["b"]);
    expect(session.impediments).toEqual([]);
    place.server.deleteQueue(queueOf("b"));
    await running.settle("accepted");
    await vi.waitFor(
      () => expect(place.server.queue(queueOf("b"))?.subscriptions).toHaveLength(1),
      patience,
    );
    await place.call("b", "b1");
    expect(textOf(await deliveries.next())).toBe("b1");
  });

  test.each([
    { why: "must not be run twice", isRepeatable: (tool: string) => tool !== "kept" },
    { why: "have no delivery to spare", maxRedeliveries: 2 },
  ])("keeps one call in hand of those that $why", async ({ maxRedeliveries, ...given }) => {
    await using place = await openPlace({ maxUnsettled: 1, isRepeatable, ...given });
    if (maxRedeliveries !== undefined) {
      place.server.createQueue(queueOf("kept"), { accessType: "non-exclusive", maxRedeliveries });
    }
    await using session = await place.broker.connect(["a", "kept", "other"], never);
    const deliveries = pull(session);
    await place.call("a", "a1");
    const running = await deliveries.next();
    await place.call("kept", "1", "2");
    await whenParked(place, ["other"]);
    expect(place.server.queue(queueOf("kept"))).toMatchObject({ depth: 2, unsettled: 1 });
    await using free = await serve(place, ["kept"]);
    const others = pull(free);
    expect(await others.next()).toMatchObject({ redelivered: false });
    await running.settle("accepted");
    const kept = await deliveries.next();
    expect([textOf(kept), kept.redelivered]).toEqual(["1", false]);
  });

  test("lets no queue go where nobody says that calls may be repeated", async () => {
    await using place = await openPlace({ maxUnsettled: 1 });
    const unbound = vi.fn();
    place.server.events.on("unbound", unbound);
    await using session = await place.broker.connect(["a", "b"], never);
    await place.call("a", "a1");
    await hold(session, 1);
    // Another that is as busy, since later, has let its queues go.
    const others = await openPlace({ maxUnsettled: 1, isRepeatable });
    await using _others = others;
    await using other = await others.broker.connect(["a", "b"], never);
    await others.call("a", "a1");
    await hold(other, 1);
    await whenParked(others, ["b"]);
    expect(unbound).not.toHaveBeenCalled();
  });
});

test("a call that waits long for its turn goes to another worker, though calls end often", async () => {
  const many = Array.from({ length: 10 }, (_, n) => `tool-${n}`);
  await using place = await openPlace({ maxUnsettled: 1, isRepeatable });
  await using busy = await place.broker.connect(many, never);
  await Promise.all(many.map((tool) => place.call(tool, tool)));
  await using free = await serve(place, many);
  let run = 0;
  const running = (async () => {
    for await (const delivery of busy.deliveries) {
      await pass(350);
      run++;
      await delivery.settle("accepted");
    }
  })();
  const given = pull(free);
  expect(await given.next()).toMatchObject({ deliveryCount: 2 });
  expect(run).toBeLessThan(many.length);
  await busy.pause();
  await running;
});

test("a worker with short calls stays bound to its queues, however many calls wait", async () => {
  await using place = await openPlace({ maxUnsettled: 2, isRepeatable });
  await using session = await place.broker.connect(tools, never);
  const bound = vi.fn();
  place.server.events.on("bound", bound);
  for (let n = 0; n < 20; n++) await Promise.all(tools.map((tool) => place.call(tool, `${n}`)));
  const deliveries = pull(session);
  for (let n = 0; n < 20 * tools.length; n++) {
    const delivery = await deliveries.next();
    expect(delivery.deliveryCount).toBe(1);
    await delivery.settle("accepted");
  }
  expect(bound).not.toHaveBeenCalled();
});

describe("calls in the hand of a worker that lets their queue go", () => {
  type End = (session: BrokerSession, place: Place) => unknown;
  const loses = {
    how: "loses its connection",
    end: (_session: BrokerSession, { server }: Place) => server.dropAll(),
  };
  const otherEnds: readonly {
    readonly how: string;
    readonly end: End;
    readonly deliveries?: number;
  }[] = [
    { how: "leaves the tool", end: (session) => session.leave("b", never) },
    { how: "is paused", end: (session) => session.pause() },
    { how: "is closed", end: (session) => session[Symbol.asyncDispose]() },
    // Then it may have them a second time.
    {
      how: "loses the queue",
      end: (_session, { server }) => server.unbindAll(queueOf("b")),
      deliveries: 3,
    },
  ];

  /** What is done to a busy worker, so long after its room was full; `waiting` calls are there, the first of them in hand. */
  async function endAfter(ms: number, waiting: readonly string[], end: End): Promise<number> {
    await using place = await openPlace({ maxUnsettled: 1, isRepeatable });
    await using session = await place.broker.connect(["a", "b"], never);
    await place.call("a", "a1");
    await hold(session, 1);
    const counts = deliveryCounts(place, "b");
    await Promise.all([place.call("b", ...waiting), pass(ms)]);
    await end(session, place);
    await using free = await serve(place, ["b"]);
    await session[Symbol.asyncDispose]();
    expect((await hold(free, waiting.length)).map(textOf).toSorted()).toEqual(waiting);
    return Math.max(...counts);
  }

  // Half a second after its room was full it looks at what it has, and for a moment at what comes next.
  const areThere = "are there for others if it $how meanwhile";
  test.each([loses])(areThere, ({ end }) => expectThere(end, 2));
  test.each(otherEnds)(areThere, { tags: "full" }, ({ end, deliveries = 2 }) =>
    expectThere(end, deliveries),
  );

  async function expectThere(end: End, deliveries: number): Promise<void> {
    const moments = [480, 520, 560, 600, 640];
    for (const waiting of [["1"], ["1", "2", "3"]]) {
      const counts = await Promise.all(moments.map((ms) => endAfter(ms, waiting, end)));
      expect(Math.max(...counts)).toBeLessThanOrEqual(deliveries);
    }
  }
});

test(
  "calls that are held for any time by two workers end once each",
  { tags: "full" },
  async () => {
    const log = keptLog();
    const three = ["a", "b", "c"];
    await using place = await openPlace({ maxUnsettled: 2, isRepeatable, log });
    const dead = vi.fn();
    place.server.events.on("dead", dead);
    const unbound = vi.fn();
    place.server.events.on("unbound", unbound);
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
    const left = new Set(await callAll(place, three, 90));
    while (left.size > 0) {
      // Long enough to be parked now and then.
      await pass(roll(6) === 0 ? busyMs : roll(40));
      for (let some = roll(held.length + 1); some > 0; some--) {
        const [delivery] = held.splice(roll(held.length), 1);
        expect(left.delete(textOf(delivery!))).toBe(true);
        await delivery!.settle("accepted");
      }
    }
    await vi.waitFor(() => {
      for (const tool of three) expect(place.server.queue(queueOf(tool))?.depth).toBe(0);
    }, patience);
    expect(unbound).toHaveBeenCalled();
    expect(dead).not.toHaveBeenCalled();
    expect(lost).toBe(0);
    expect(log.events.filter((event) => event !== "queue made")).toEqual([]);
  },
);
