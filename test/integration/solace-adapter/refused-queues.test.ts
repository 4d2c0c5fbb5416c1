/**
 * Queues that the Solace adapter cannot have, at the start or later: their tools wait for them, and no other tool does.
 */
import { describe, expect, test, vi } from "vitest";
import { type Fault, refusals } from "../../../harness/fakes/solace/faults.ts";
import { type Clock, systemClock } from "../../../worker/support/clock.ts";
import { pull, textOf } from "../../conformance/broker.ts";
import { patience } from "../../support/patience.ts";
import { HandClock } from "../../unit/broker/hand-clock.ts";
import { type Place, type Told, keptLog, never, openPlace, queueOf } from "./place.ts";

const refused = "queue cannot be used";
const served = "queue can be used again";

/** What was told of a tool's queue, as often as it was refused. */
function refusalsOf(told: readonly Told[], tool: string): readonly Told[] {
  return told.filter(
    ({ event, facts }) => event === refused && "queue" in facts && facts.queue === queueOf(tool),
  );
}

/** Waits until a tool is served. */
async function becomesServed(place: Place, tool: string): Promise<void> {
  await vi.waitFor(
    () => expect(place.server.queue(queueOf(tool))?.consumers).toHaveLength(1),
    patience,
  );
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

/** Refuses what concerns the queue of the tool `bad`. */
function refuseBad(fault: Fault): (queue: string) => Fault | undefined {
  return (queue) => (queue === queueOf("bad") ? fault : undefined);
}

describe("a queue that cannot be had when the session opens", () => {
  const cases: readonly {
    readonly what: string;
    readonly spoil: (place: Place) => void;
    readonly mend: (place: Place) => void;
    readonly told: object;
  }[] = [
    {
      what: "is exclusive",
      spoil: ({ server }) => server.createQueue(queueOf("bad"), { accessType: "exclusive" }),
      mend: ({ server }) => server.deleteQueue(queueOf("bad")),
      told: { err: { message: expect.stringMatching(/is exclusive.*Make it non-exclusive/s) } },
    },
    {
      what: "is shut down",
      spoil: ({ server }) => (server.faults.bind = refuseBad(refusals.queueShutdown)),
      mend: ({ server }) => (server.faults.bind = undefined),
      told: {
        code: "QUEUE_SHUTDOWN",
        err: { message: expect.stringMatching(/Queue Shutdown\. Enable the outgoing side/) },
      },
    },
    {
      what: "lets no more consumers bind",
      spoil: ({ server }) => (server.faults.bind = refuseBad(refusals.maxClientsForQueue)),
      mend: ({ server }) => (server.faults.bind = undefined),
      told: {
        code: "MAX_CLIENTS_FOR_QUEUE",
        err: { message: expect.stringMatching(/Raise how many consumers/) },
      },
    },
    {
      what: "is missing and must not be made",
      spoil: ({ server }) => (server.faults.provision = refuseBad(refusals.permission)),
      mend: ({ server }) => server.createQueue(queueOf("bad"), { accessType: "non-exclusive" }),
      told: {
        code: "PERMISSION_NOT_ALLOWED",
        err: { message: expect.stringMatching(/no queue .*tool\/bad.*client profile/) },
      },
    },
    {
      what: "has no room for the subscription",
      spoil: ({ server }) =>
        (server.faults.subscribe = (_topic, queue) =>
          queue === queueOf("bad") ? refusals.maxSubscriptions : undefined),
      mend: ({ server }) => (server.faults.subscribe = undefined),
      told: {
        err: { message: expect.stringMatching(/did not take .*invoke\/bad into the queue/) },
      },
    },
  ];

  test.each(cases)(
    "as it $what leaves its tool unserved until it can, and no other",
    async ({ spoil, mend, told }) => {
      const log = keptLog();
      await using place = await openPlace({ log });
      spoil(place);
      await using session = await place.broker.connect(["bad", "good"], never);
      const deliveries = pull(session);
      await expectServed(place, deliveries, "good");
      expect(refusalsOf(log.told, "bad")[0]?.facts).toMatchObject({
        queue: queueOf("bad"),
        tools: ["bad"],
        delayMs: expect.any(Number),
        ...told,
      });
      mend(place);
      await vi.waitFor(() => expect(log.events).toContain(served), patience);
      // One that an administrator made is subscribed by the worker.
      await expectServed(place, deliveries, "bad");
      await expectServed(place, deliveries, "good");
      expect(refusalsOf(log.told, "good")).toEqual([]);
    },
  );

  test("as its name is too long leaves its tool unserved, and no other", async () => {
    const log = keptLog();
    await using place = await openPlace({ log });
    const long = "t".repeat(200);
    await using session = await place.broker.connect([long, "good"], never);
    await expectServed(place, pull(session), "good");
    expect(refusalsOf(log.told, long)[0]?.facts).toMatchObject({
      err: { message: expect.stringMatching(/Solace allows 200: choose a shorter name/) },
    });
  });

  test("fails the session when it is so with every queue", async () => {
    await using place = await openPlace();
    place.server.faults.bind = () => refusals.queueShutdown;
    await expect(place.broker.connect(["a", "b"], never)).rejects.toMatchObject({
      name: "BrokerError",
      transient: true,
      message: expect.stringMatching(/^None of 2 tools can be served\. .*tool\/a: Queue Shutdown/),
    });
    await vi.waitFor(() => expect(place.server.clients).toHaveLength(1), patience);
  });
});

describe("a queue that cannot be had when a tool is added", () => {
  test.each([
    ["is shut down", refusals.queueShutdown, true],
    ["must not be bound to", refusals.permission, false],
  ])("as it %s is let go, and no other, and can be tried again", async (_, fault, transient) => {
    await using place = await openPlace();
    await using session = await place.broker.connect(["good"], never);
    const deliveries = pull(session);
    place.server.faults.bind = refuseBad(fault);
    await expect(session.serve("bad", never)).rejects.toMatchObject({
      name: "BrokerError",
      transient,
    });
    await expectServed(place, deliveries, "good");
    place.server.faults.bind = undefined;
    await session.serve("bad", never);
    await expectServed(place, deliveries, "bad");
  });

  test("as it is exclusive or has no room for its subscription is let go again", async () => {
    await using place = await openPlace();
    await using session = await place.broker.connect([], never);
    place.server.createQueue(queueOf("exclusive"), { accessType: "exclusive" });
    await expect(session.serve("exclusive", never)).rejects.toThrow("is exclusive");
    place.server.faults.subscribe = () => refusals.maxSubscriptions;
    await expect(session.serve("full", never)).rejects.toThrow("Max Subscriptions");
    expect(place.server.queues.flatMap(({ consumers }) => consumers)).toEqual([]);
  });
});

test("a queue that cannot be had is asked for no more once its tool is left", async () => {
  const sleeps: { readonly ms: number; readonly signal: AbortSignal }[] = [];
  const clock: Clock = {
    ...systemClock,
    sleep: (ms, signal) =>
      new Promise((_resolve, reject) => {
        sleeps.push({ ms, signal: signal! });
        signal!.addEventListener("abort", () => reject(signal!.reason as Error));
      }),
  };
  const log = keptLog();
  await using place = await openPlace({ clock, log });
  place.server.faults.bind = refuseBad(refusals.queueShutdown);
  await using session = await place.broker.connect(["bad", "good"], never);
  const told = refusalsOf(log.told, "bad");
  expect(told).toHaveLength(1);
  const { delayMs } = told[0]?.facts as { delayMs: number };
  const delay = sleeps.findLast(({ ms }) => ms === delayMs);
  expect(delay?.signal.aborted).toBe(false);
  await session.leave("bad", never);
  expect(delay?.signal.aborted).toBe(true);
});

describe("a queue that goes down while the session is up", () => {
  test.each([
    ["Queue Shutdown", refusals.queueShutdown],
    ["Service Unavailable", refusals.serviceUnavailable],
    ["Unknown Queue", refusals.unknownQueue],
  ])("by %s is bound to again, while the session and other tools go on", async (text, reason) => {
    const log = keptLog();
    await using place = await openPlace({ log });
    await using session = await place.broker.connect(["bad", "good"], never);
    let isLost = false;
    void session.closed.then(({ reason: end }) => (isLost = end === "lost"));
    const deliveries = pull(session);
    place.server.faults.bind = refuseBad(
      reason === refusals.unknownQueue ? refusals.queueShutdown : reason,
    );
    place.server.unbindAll(queueOf("bad"), reason);
    await vi.waitFor(
      () => expect(refusalsOf(log.told, "bad").length).toBeGreaterThanOrEqual(2),
      patience,
    );
    expect(refusalsOf(log.told, "bad")[0]?.facts).toMatchObject({
      tools: ["bad"],
      err: {
        message: expect.stringMatching(
          new RegExp(`did not keep the flow from the queue .*tool/bad: ${text}`),
        ),
      },
    });
    await expectServed(place, deliveries, "good");
    place.server.faults.bind = undefined;
    await becomesServed(place, "bad");
    await expectServed(place, deliveries, "bad");
    expect(isLost).toBe(false);
    expect(refusalsOf(log.told, "good")).toEqual([]);
  });

  test("is named as what is missing when there is no other, until it is had again", async () => {
    await using place = await openPlace();
    await using session = await place.broker.connect(["bad"], never);
    expect(session.impediments).toEqual([]);
    place.server.faults.bind = refuseBad(refusals.queueShutdown);
    place.server.unbindAll(queueOf("bad"), refusals.queueShutdown);
    await vi.waitFor(
      () => expect(session.impediments).toEqual(["no queue of the tools can be used"]),
      patience,
    );
    place.server.faults.bind = undefined;
    await vi.waitFor(() => expect(session.impediments).toEqual([]), patience);
    await session.leave("bad", never);
    expect(session.impediments).toEqual([]);
  });

  test("gives the session up after a minute when there is no other, so that connecting is tried as often as is configured", async () => {
    const clock = new HandClock();
    await using place = await openPlace({ clock });
    await using session = await place.broker.connect(["bad"], never);
    let isClosed = false;
    void session.closed.then(() => (isClosed = true));
    const lose = async (): Promise<void> => {
      place.server.unbindAll(queueOf("bad"));
      await vi.waitFor(() => expect(session.impediments).toHaveLength(1), patience);
    };
    place.server.faults.bind = refuseBad(refusals.queueShutdown);
    await lose();
    clock.advance(59_000);
    place.server.faults.bind = undefined;
    await vi.waitFor(async () => {
      clock.advance(1);
      await place.call("t", "1");
      expect(session.impediments).toEqual([]);
    }, patience);
    clock.advance(1_000);
    place.server.faults.bind = refuseBad(refusals.queueShutdown);
    await lose();
    clock.advance(59_000);
    await place.call("t", "1");
    expect(isClosed).toBe(false);
    clock.advance(1_000);
    expect(await session.closed).toMatchObject({
      reason: "lost",
      cause: { message: "No queue of the tools could be used for 60 seconds", transient: true },
    });
    await expect(place.broker.connect(["bad"], never)).rejects.toThrow("Queue Shutdown");
  });

  test("as it was deleted is made again, with its subscription and the limit that it has then", async () => {
    await using place = await openPlace({ maxDeliveries: 5 });
    await using session = await place.broker.connect(["echo"], never);
    const deliveries = pull(session);
    const limitOfNext = async (): Promise<number | undefined> => {
      await place.call("echo", "1");
      const delivery = await deliveries.next();
      await delivery.settle("accepted");
      return delivery.maxDeliveries;
    };
    const remake = async (maxRedeliveries?: number): Promise<void> => {
      place.server.deleteQueue(queueOf("echo"));
      if (maxRedeliveries !== undefined) {
        place.server.createQueue(queueOf("echo"), { accessType: "non-exclusive", maxRedeliveries });
      }
      await vi.waitFor(
        () => expect(place.server.queue(queueOf("echo"))?.subscriptions).toHaveLength(1),
        patience,
      );
    };
    expect(await limitOfNext()).toBe(5);
    await remake(7);
    expect(await limitOfNext()).toBe(8);
    // Of a queue without a limit a call is given up after as many deliveries as of one that the worker makes.
    await remake(0);
    expect(await limitOfNext()).toBe(5);
    await remake(3);
    expect(await limitOfNext()).toBe(4);
    await remake();
    expect(await limitOfNext()).toBe(5);
  });

  test("takes back what nobody has begun, and each call is handed out to one", async () => {
    const log = keptLog();
    await using place = await openPlace({ maxUnsettled: 4, log });
    await using session = await place.broker.connect(["echo"], never);
    const deliveries = pull(session);
    await place.call("echo", "0", "1", "2");
    const begun = await deliveries.next();
    await vi.waitFor(
      () => expect(place.server.queue(queueOf("echo"))?.unsettled).toBe(3),
      patience,
    );
    // What the broker sent before this confirmation has arrived with it.
    await session.publish({ topic: "t", payload: Buffer.from("1") }, never);
    place.server.unbindAll(queueOf("echo"));
    await vi.waitFor(() => expect(refusalsOf(log.told, "echo")).toHaveLength(1), patience);
    const again = [await deliveries.next(), await deliveries.next(), await deliveries.next()];
    expect(again.map(textOf)).toEqual(["0", "1", "2"]);
    expect(again.map(({ deliveryCount }) => deliveryCount)).toEqual([2, 2, 2]);
    // Its first delivery is the broker's again.
    await begun.settle("accepted");
    for (const delivery of again) await delivery.settle("accepted");
    await vi.waitFor(
      () =>
        expect(place.server.queue(queueOf("echo"))).toMatchObject({
          depth: 0,
          settlements: { accepted: 3 },
        }),
      patience,
    );
  });
});

test("an outage of the broker is no trouble of a queue", async () => {
  const log = keptLog();
  await using place = await openPlace({ log });
  await using session = await place.broker.connect(["a", "b"], never);
  place.server.dropAll();
  expect(await session.closed).toMatchObject({ reason: "lost" });
  await session[Symbol.asyncDispose]();
  expect(log.events).not.toContain(refused);
});

describe("a queue that does not count deliveries", () => {
  test("is told of once, with the remedy, and its calls count as delivered twice when they come again", async () => {
    const log = keptLog();
    await using place = await openPlace({ log, maxDeliveries: 5 });
    place.server.createQueue(queueOf("echo"), {
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
    expect(log.told.filter(({ event }) => event.includes("deliveryCountEnabled"))).toEqual([
      { event: expect.stringMatching(/^queue does not tell/), facts: { queue: queueOf("echo") } },
    ]);
  });
});
