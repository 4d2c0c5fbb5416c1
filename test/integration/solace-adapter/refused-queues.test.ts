/**
 * Queues that the Solace adapter cannot consume, at the start or later: it goes on trying, and
 * consumes the other queues of the group meanwhile.
 */
import { describe, expect, test, vi } from "vitest";
import { type Fault, refusals } from "../../../harness/fakes/solace/faults.ts";
import { type Clock, systemClock } from "../../../worker/support/clock.ts";
import { pull, textOf } from "../../conformance/broker.ts";
import { patience } from "../../support/patience.ts";
import {
  type Place,
  addressOf,
  hurriedClock as clock,
  defaultAddress,
  never,
  openPlace,
  queueForEach,
} from "./place.ts";
import { type KeptLine, keptLog } from "../../support/workers/kept-log.ts";

const refused = "queue.consume_refused";
const consumed = "queue.consume_resumed";

/** A worker with the queues `bad` and `good`, for the tools of these names. */
const badAndGood = queueForEach(["bad", "good"]);

/** What was told of a queue, as often as it was refused. */
function refusalsOf(told: readonly KeptLine[], address: string): readonly KeptLine[] {
  return told.filter(
    ({ event, facts }) => event === refused && "queue" in facts && facts.queue === address,
  );
}

/** Waits until one worker consumes a queue. */
async function becomesConsumed({ server }: Place, address: string): Promise<void> {
  await vi.waitFor(() => expect(server.queue(address)?.consumers).toHaveLength(1), patience);
}

/** Calls a tool, and expects that its call is the next one. */
async function expectServed(
  place: Place,
  deliveries: ReturnType<typeof pull>,
  tool: string,
): Promise<void> {
  await place.call(tool, tool);
  const delivery = await deliveries.next();
  expect(textOf(delivery)).toBe(tool);
  await delivery.settle("accepted");
}

/** Refuses what concerns the queue `bad`. */
function refuseBad(fault: Fault): (queue: string) => Fault | undefined {
  return (queue) => (queue === addressOf("bad") ? fault : undefined);
}

describe("a queue that cannot be consumed when the session opens", () => {
  const cases: readonly {
    readonly what: string;
    readonly spoil: (place: Place) => void;
    readonly mend: (place: Place) => void;
    readonly reason: RegExp;
  }[] = [
    {
      what: "is exclusive",
      spoil: ({ server }) => server.createQueue(addressOf("bad"), { accessType: "exclusive" }),
      mend: ({ server }) => server.deleteQueue(addressOf("bad")),
      reason: /is exclusive.*Make it non-exclusive/s,
    },
    {
      what: "is shut down",
      spoil: ({ server }) => (server.faults.bind = refuseBad(refusals.queueShutdown)),
      mend: ({ server }) => (server.faults.bind = undefined),
      reason: /Queue Shutdown\. Enable the outgoing side/,
    },
    {
      what: "lets no more consumers bind",
      spoil: ({ server }) => (server.faults.bind = refuseBad(refusals.maxClientsForQueue)),
      mend: ({ server }) => (server.faults.bind = undefined),
      reason: /Raise how many consumers/,
    },
    {
      what: "is missing and must not be made",
      spoil: ({ server }) => (server.faults.provision = refuseBad(refusals.permission)),
      mend: ({ server }) => server.createQueue(addressOf("bad"), { accessType: "non-exclusive" }),
      reason: /no queue .*default\/bad.*client profile/,
    },
    {
      what: "has no room for the subscription of its only tool",
      spoil: ({ server }) =>
        (server.faults.subscribe = (topic) =>
          topic.endsWith("/bad") ? refusals.maxSubscriptions : undefined),
      mend: ({ server }) => (server.faults.subscribe = undefined),
      reason: /did not take .*invoke\/bad into the queue/,
    },
  ];

  test.each(cases)(
    "as it $what is consumed as soon as it can be, and the others at once",
    async ({ spoil, mend, reason }) => {
      const log = keptLog();
      await using place = await openPlace({ log, clock, ...badAndGood });
      spoil(place);
      await using session = await place.broker.connect(["bad", "good"], never);
      const deliveries = pull(session);
      await expectServed(place, deliveries, "good");
      expect(refusalsOf(log.lines, addressOf("bad"))[0]?.facts).toMatchObject({
        delayMs: expect.any(Number) as number,
        reason: expect.stringMatching(reason) as string,
      });
      expect(session.notReadyReasons).toEqual([]);
      mend(place);
      await vi.waitFor(() => expect(log.events).toContain(consumed), patience);
      // One that an administrator made is subscribed by the worker.
      await expectServed(place, deliveries, "bad");
      await expectServed(place, deliveries, "good");
      expect(refusalsOf(log.lines, addressOf("good"))).toEqual([]);
    },
  );

  test("fails the session when it is so with every queue", async () => {
    await using place = await openPlace({ clock, ...badAndGood });
    place.server.faults.bind = () => refusals.queueShutdown;
    await expect(place.broker.connect(["bad", "good"], never)).rejects.toMatchObject({
      name: "BrokerError",
      transient: true,
      message: expect.stringMatching(/did not bind to the queue .*default\/bad: Queue Shutdown/),
    });
    await vi.waitFor(() => expect(place.server.clients).toHaveLength(1), patience);
  });

  test("is asked for no more once the session is paused", async () => {
    const delays: AbortSignal[] = [];
    const slow: Clock = {
      ...systemClock,
      sleep: (_ms, signal) =>
        new Promise((_resolve, reject) => {
          delays.push(signal!);
          signal!.addEventListener("abort", () => reject(signal!.reason as Error));
        }),
    };
    const log = keptLog();
    await using place = await openPlace({ clock: slow, log, ...badAndGood });
    place.server.faults.bind = refuseBad(refusals.queueShutdown);
    await using session = await place.broker.connect(["bad", "good"], never);
    expect(refusalsOf(log.lines, addressOf("bad"))).toHaveLength(1);
    expect(delays.at(-1)?.aborted).toBe(false);
    await session.pause();
    expect(delays.at(-1)?.aborted).toBe(true);
  });
});

test("one tool that its queue has no room for keeps no other from being served", async () => {
  const log = keptLog();
  await using place = await openPlace({ clock, log });
  place.server.faults.subscribe = (topic) =>
    topic.endsWith("/bad") ? refusals.maxSubscriptions : undefined;
  await using session = await place.broker.connect(["bad", "good"], never);
  await expectServed(place, pull(session), "good");
  expect(log.lines.filter(({ event }) => event === "tool.route_refused")).toMatchObject([
    { facts: { tool: "bad" } },
  ]);
});

describe("a tool that is added", () => {
  test.each([
    ["is shut down", refusals.queueShutdown],
    ["must not be bound to", refusals.permission],
  ])(
    "while its queue %s is refused, can be tried again, and disturbs no other",
    async (_, fault) => {
      const log = keptLog();
      await using place = await openPlace({ log, clock, ...badAndGood });
      place.server.faults.bind = refuseBad(fault);
      await using session = await place.broker.connect(["good"], never);
      const deliveries = pull(session);
      await expect(session.serve("bad", never)).rejects.toMatchObject({
        name: "BrokerError",
        transient: true,
        message: expect.stringMatching(/queue bad is not consumed at the moment/),
      });
      await expectServed(place, deliveries, "good");
      place.server.faults.bind = undefined;
      await vi.waitFor(() => expect(log.events).toContain(consumed), patience);
      await session.serve("bad", never);
      await expectServed(place, deliveries, "bad");
    },
  );

  test("first is refused with the reason why no queue can be consumed, and can be tried again", async () => {
    await using place = await openPlace({ clock });
    await using session = await place.broker.connect([], never);
    place.server.createQueue(defaultAddress, { accessType: "exclusive" });
    await expect(session.serve("echo", never)).rejects.toThrow("is exclusive");
    expect(place.server.queue(defaultAddress)?.consumers).toEqual([]);
    expect(session.notReadyReasons).toEqual([]);
    place.server.deleteQueue(defaultAddress);
    place.server.faults.subscribe = () => refusals.maxSubscriptions;
    await expect(session.serve("echo", never)).rejects.toThrow("Max Subscriptions");
    place.server.faults.subscribe = undefined;
    await session.serve("echo", never);
    await expectServed(place, pull(session), "echo");
    expect(place.server.queue(defaultAddress)?.consumers).toHaveLength(1);
  });
});

test("a bind that is answered after the session was paused leaves no consumer behind", async () => {
  await using place = await openPlace({ clock });
  await using session = await place.broker.connect([], never);
  place.server.createQueue(defaultAddress, { accessType: "non-exclusive", maxRedeliveries: 4 });
  const answering = Promise.withResolvers<void>();
  place.server.faults.answersBindAfter = () => answering.promise;
  const serving = session.serve("echo", never);
  await becomesConsumed(place, defaultAddress);
  await session.pause();
  await expect(serving).rejects.toThrow("The consumer was cancelled");
  answering.resolve();
  await vi.waitFor(
    () => expect(place.server.queue(defaultAddress)?.consumers).toEqual([]),
    patience,
  );
  const message = { topic: "t", payload: Buffer.from("1") };
  expect(await session.publish(message, never)).toBe("confirmed");
});

describe("a queue that goes down while the session is up", () => {
  test.each([
    ["Queue Shutdown", refusals.queueShutdown],
    ["Service Unavailable", refusals.serviceUnavailable],
    ["Unknown Queue", refusals.unknownQueue],
  ])("by %s is bound to again, while the session and other queues go on", async (text, reason) => {
    const log = keptLog();
    await using place = await openPlace({ log, clock, ...badAndGood });
    await using session = await place.broker.connect(["bad", "good"], never);
    let isLost = false;
    void session.closed.then(({ reason: end }) => (isLost = end === "lost"));
    const deliveries = pull(session);
    const isUnknown = reason === refusals.unknownQueue;
    place.server.faults.bind = refuseBad(isUnknown ? refusals.queueShutdown : reason);
    place.server.unbindAll(addressOf("bad"), reason);
    const told = (): readonly KeptLine[] => refusalsOf(log.lines, addressOf("bad"));
    await vi.waitFor(() => expect(told().length).toBeGreaterThanOrEqual(2), patience);
    expect(told()[0]?.facts).toMatchObject({
      reason: expect.stringMatching(
        new RegExp(`did not keep the flow from the queue .*default/bad: ${text}`),
      ) as string,
    });
    await expectServed(place, deliveries, "good");
    place.server.faults.bind = undefined;
    await becomesConsumed(place, addressOf("bad"));
    await expectServed(place, deliveries, "bad");
    expect(isLost).toBe(false);
    expect(refusalsOf(log.lines, addressOf("good"))).toEqual([]);
  });

  test("is a reason not to be ready while there is no other, and answers go out meanwhile", async () => {
    await using place = await openPlace({ clock });
    await using session = await place.broker.connect(["bad"], never);
    expect(session.notReadyReasons).toEqual([]);
    place.server.faults.bind = () => refusals.queueShutdown;
    place.server.unbindAll(defaultAddress, refusals.queueShutdown);
    const missing = ["no queue of the group can be consumed"];
    await vi.waitFor(() => expect(session.notReadyReasons).toEqual(missing), patience);
    const answer = { topic: "t", payload: Buffer.from("1") };
    expect(await session.publish(answer, never)).toBe("confirmed");
    place.server.faults.bind = undefined;
    await vi.waitFor(() => expect(session.notReadyReasons).toEqual([]), patience);
    await expectServed(place, pull(session), "bad");
  });

  test("as it was deleted is made again, with its subscriptions and the limit that it has then", async () => {
    await using place = await openPlace({ clock, maxDeliveries: 5 });
    await using session = await place.broker.connect(["echo", "other"], never);
    const deliveries = pull(session);
    const limitOfNext = async (): Promise<number | undefined> => {
      await place.call("echo", "1");
      const delivery = await deliveries.next();
      await delivery.settle("accepted");
      return delivery.maxDeliveries;
    };
    const remake = async (maxRedeliveries?: number): Promise<void> => {
      place.server.deleteQueue(defaultAddress);
      if (maxRedeliveries !== undefined)
        place.server.createQueue(defaultAddress, { accessType: "non-exclusive", maxRedeliveries });
      await vi.waitFor(
        () => expect(place.server.queue(defaultAddress)?.subscriptions).toHaveLength(2),
        patience,
      );
    };
    expect(await limitOfNext()).toBe(5);
    await remake(7);
    expect(await limitOfNext()).toBe(8);
    // Of a queue without a limit a call is given up after as many deliveries as of one that the
    // worker makes.
    await remake(0);
    expect(await limitOfNext()).toBe(5);
    await remake();
    expect(await limitOfNext()).toBe(5);
  });

  test("again while it is being subscribed is bound to once more", async () => {
    const log = keptLog();
    await using place = await openPlace({ clock, log });
    await using session = await place.broker.connect(["echo"], never);
    const asked = vi.fn();
    place.server.faults.subscribe = (topic) => {
      asked(topic);
      return "silence";
    };
    place.server.deleteQueue(defaultAddress);
    await vi.waitFor(() => expect(asked).toHaveBeenCalled(), patience);
    place.server.faults.subscribe = undefined;
    place.server.unbindAll(defaultAddress);
    await vi.waitFor(() => expect(log.events).toContain(consumed), patience);
    await expectServed(place, pull(session), "echo");
    expect(place.server.queue(defaultAddress)?.consumers).toHaveLength(1);
  });

  test("takes back what nobody has begun, and each call is handed out to one", async () => {
    const log = keptLog();
    await using place = await openPlace({ clock, maxUnsettled: 4, log });
    await using session = await place.broker.connect(["echo"], never);
    const deliveries = pull(session);
    await place.call("echo", "0", "1", "2");
    const begun = await deliveries.next();
    const queue = (): unknown => place.server.queue(defaultAddress);
    await vi.waitFor(() => expect(queue()).toMatchObject({ unsettled: 3 }), patience);
    // What the broker sent before this confirmation has arrived with it.
    await session.publish({ topic: "t", payload: Buffer.from("1") }, never);
    place.server.unbindAll(defaultAddress);
    await vi.waitFor(() => expect(refusalsOf(log.lines, defaultAddress)).toHaveLength(1), patience);
    expect(begun.isLost).toBe(true);
    const again = [await deliveries.next(), await deliveries.next(), await deliveries.next()];
    expect(again.map(textOf)).toEqual(["0", "1", "2"]);
    expect(again.map(({ deliveryCount }) => deliveryCount)).toEqual([2, 2, 2]);
    // Its first delivery is the broker's again.
    await begun.settle("accepted");
    for (const delivery of again) await delivery.settle("accepted");
    const settlements = { accepted: 3 };
    await vi.waitFor(() => expect(queue()).toMatchObject({ depth: 0, settlements }), patience);
    // Nothing of it counts against the limit any more.
    await place.call("echo", "3", "4", "5", "6");
    const held = [];
    while (held.length < 4) held.push(textOf(await deliveries.next()));
    expect(held).toEqual(["3", "4", "5", "6"]);
  });
});

test("a flow that is used up goes on until the broker lets the worker bind another one", async () => {
  const log = keptLog();
  await using place = await openPlace({ clock, maxUnsettled: 1, log });
  await using session = await place.broker.connect(["echo"], never);
  const deliveries = pull(session);
  const calls = Array.from({ length: 40 }, (_, n) => `${n}`);
  const run = async (): Promise<void> => {
    await Promise.all(calls.map((call) => place.call("echo", call)));
    const left = new Set(calls);
    while (left.size > 0) {
      const delivery = await deliveries.next();
      expect(left.delete(textOf(delivery))).toBe(true);
      // What ends in turns has the library remember most.
      await delivery.settle(left.size % 2 === 0 ? "rejected" : "accepted");
    }
  };
  place.server.faults.bind = () => refusals.maxClientsForQueue;
  await run();
  expect(refusalsOf(log.lines, defaultAddress).length).toBeGreaterThanOrEqual(1);
  place.server.faults.bind = undefined;
  await run();
  await vi.waitFor(() => expect(log.events).toContain(consumed), patience);
  await run();
  await becomesConsumed(place, defaultAddress);
});

test("an outage of the broker is no trouble of a queue", async () => {
  const log = keptLog();
  await using place = await openPlace({ log, clock, ...badAndGood });
  await using session = await place.broker.connect(["bad", "good"], never);
  place.server.dropAll();
  expect(await session.closed).toMatchObject({ reason: "lost" });
  await session[Symbol.asyncDispose]();
  expect(log.events).not.toContain(refused);
});

describe("a queue that does not count deliveries", () => {
  test("is told of once, with the remedy, and its calls count as delivered twice when they come again", async () => {
    const log = keptLog();
    await using place = await openPlace({ clock, log, maxDeliveries: 5 });
    place.server.createQueue(defaultAddress, {
      accessType: "non-exclusive",
      maxRedeliveries: 4,
      countsDeliveries: false,
    });
    await using session = await place.broker.connect(["echo"], never);
    const deliveries = pull(session);
    await place.call("echo", "1");
    const counts: number[] = [];
    for (let n = 0; n < 3; n++) {
      const delivery = await deliveries.next();
      counts.push(delivery.deliveryCount);
      await delivery.settle(n < 2 ? "failed" : "accepted");
    }
    expect(counts).toEqual([1, 2, 2]);
    expect(log.factsOf("queue.delivery_count_missing")).toEqual([{ queue: defaultAddress }]);
  });
});
