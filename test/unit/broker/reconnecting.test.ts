/**
 * The reconnect policy: when it tries again, and when it does not.
 */
import { getEventListeners } from "node:events";
import { describe, expect, test, vi } from "vitest";
import { type Broker, BrokerError, type PublishOutcome } from "../../../worker/broker/broker.ts";
import { type MemoryBroker, createMemoryBroker } from "../../fakes/memory-broker/broker.ts";
import { type ReconnectingBroker, reconnecting } from "../../../worker/broker/reconnecting.ts";
import { invokeTopic } from "../../../worker/protocol/topics.ts";
import { hear, pull, textOf } from "../../conformance/broker.ts";
import { HandClock } from "./hand-clock.ts";
import { eventOf } from "../../support/workers/kept-log.ts";
import { patience } from "../../support/patience.ts";

const never = new AbortController().signal;

/** A memory broker that can be out of reach, behind the decorator, on a clock of its own. */
function setUp(options: { maxAttempts?: number } = {}): {
  broker: ReconnectingBroker;
  clock: HandClock;
  events: string[];
  /** The facts of warnings. */
  told: { readonly attempt?: number; readonly reason?: string; readonly err?: Error }[];
  /** What connecting fails with from now on. */
  fail: (error: BrokerError | undefined) => void;
  drop: () => void;
} {
  const clock = new HandClock();
  const memory = createMemoryBroker({ namespace: "ns" });
  const events: string[] = [];
  const told: { readonly attempt?: number; readonly reason?: string; readonly err?: Error }[] = [];
  let failure: BrokerError | undefined;
  const unreliable: Broker = {
    kind: "unreliable",
    connect: (tools, signal) => (failure ? Promise.reject(failure) : memory.connect(tools, signal)),
  };
  return {
    broker: reconnecting(unreliable, {
      maxAttempts: options.maxAttempts ?? 0,
      backoff: { baseMs: 100, capMs: 3_000 },
      random: () => 1 - Number.EPSILON,
      clock,
      log: {
        info: (facts) => void events.push(eventOf(facts)),
        warn: (facts) => {
          events.push(eventOf(facts));
          told.push(facts);
        },
      },
    }),
    clock,
    events,
    told,
    fail: (error) => (failure = error),
    drop: () => memory.dropSessions(),
  };
}

const unreachable = new BrokerError("nobody there", { transient: true });
const refused = new BrokerError("wrong password", { transient: false });

/** Lets time pass until `condition` holds. */
async function passUntil(clock: HandClock, condition: () => boolean): Promise<void> {
  await vi.waitFor(
    () => {
      clock.advance(3_000);
      expect(condition()).toBe(true);
    },
    { interval: 1 },
  );
}

describe("reconnecting", () => {
  test("waits longer from attempt to attempt, up to the cap", async () => {
    const { broker, clock, fail } = setUp();
    fail(unreachable);
    const controller = new AbortController();
    const connecting = broker.connect([], controller.signal);
    connecting.catch(() => {});
    await passUntil(clock, () => clock.slept.length >= 8);
    controller.abort(new Error("enough"));
    await expect(connecting).rejects.toThrow("enough");
    expect(clock.slept.slice(0, 8)).toEqual([100, 200, 400, 800, 1_600, 3_000, 3_000, 3_000]);
  });

  test("says what it does, for those who operate it", async () => {
    const { broker, clock, fail, drop, events } = setUp();
    fail(unreachable);
    const connecting = broker.connect([], never);
    await vi.waitFor(() => expect(clock.sleeping).toBe(1), patience);
    fail(undefined);
    await passUntil(clock, () => events.includes("broker.connected"));
    await using session = await connecting;
    drop();
    await vi.waitFor(() => expect(session.connected).toBe(false), patience);
    await passUntil(clock, () => session.connected);
    expect(events).toEqual([
      "broker.connect_failed",
      "broker.connected",
      "broker.connection_lost",
      "broker.connected",
    ]);
  });

  test("tells those who wait of the loss of the connection, and has another one then", async () => {
    const { broker, clock, drop } = setUp();
    const session = await broker.connect([], never);
    const { connection } = session;
    expect(connection.aborted).toBe(false);
    drop();
    await vi.waitFor(() => expect(connection.aborted).toBe(true), patience);
    expect(connection.reason).toBeInstanceOf(BrokerError);
    expect(session.connection.aborted).toBe(true);
    await passUntil(clock, () => session.connected);
    expect(session.connection.aborted).toBe(false);
    await session[Symbol.asyncDispose]();
    expect(session.connection.aborted).toBe(true);
  });

  test("begins with short delays again only after a connection that lasted", async () => {
    const { broker, clock, drop } = setUp();
    await using session = await broker.connect([], never);
    for (let n = 0; n < 3; n++) {
      clock.advance(9_000);
      drop();
      await vi.waitFor(() => expect(clock.sleeping).toBe(1), patience);
      clock.advance(400);
      await vi.waitFor(() => expect(session.connected).toBe(true), patience);
    }
    expect(clock.slept).toEqual([100, 200, 400]);
    clock.advance(10_000);
    drop();
    await vi.waitFor(() => expect(clock.slept).toEqual([100, 200, 400, 100]), patience);
  });

  test("counts attempts anew for every outage", async () => {
    const { broker, clock, fail, drop } = setUp({ maxAttempts: 2 });
    await using session = await broker.connect([], never);
    for (let n = 0; n < 3; n++) {
      fail(unreachable);
      drop();
      await vi.waitFor(() => expect(clock.sleeping).toBe(1), patience);
      // The first attempt fails, the second succeeds.
      clock.advance(3_000);
      await vi.waitFor(() => expect(clock.sleeping).toBe(1), patience);
      fail(undefined);
      clock.advance(3_000);
      await vi.waitFor(() => expect(session.connected).toBe(true), patience);
    }
  });

  test("takes a refusal for final at first, and never after the broker has accepted it once", async () => {
    const { broker, clock, fail, drop } = setUp();
    fail(refused);
    await expect(broker.connect([], never)).rejects.toBe(refused);
    expect(clock.slept).toEqual([]);
    fail(undefined);
    await using session = await broker.connect([], never);
    fail(refused);
    drop();
    await passUntil(clock, () => clock.slept.length >= 20);
    fail(undefined);
    await passUntil(clock, () => session.connected);
  });

  test("logs a failure without a stack, at growing intervals, and at once when it becomes another", async () => {
    const { broker, clock, told, fail, drop } = setUp();
    await using session = await broker.connect([], never);
    fail(unreachable);
    drop();
    // As many sleeps as take five minutes and more.
    await passUntil(clock, () => clock.slept.length >= 120);
    fail(refused);
    await passUntil(clock, () => told.some(({ reason }) => reason === refused.message));
    fail(undefined);
    await passUntil(clock, () => session.connected);
    expect(told.every(({ err }) => err === undefined)).toBe(true);
    const unreached = told.filter(({ reason }) => reason === unreachable.message);
    const attempts = unreached.map(({ attempt = 0 }) => attempt);
    const gaps = attempts.slice(1).map((attempt, at) => attempt - (attempts[at] ?? 0));
    expect(gaps).toEqual(gaps.toSorted((one, other) => one - other));
    expect(attempts.length).toBeLessThan(12);
    expect(attempts[0]).toBe(1);
  });

  test("leaves no sleeper behind when it is disposed of", async () => {
    const { broker, clock, drop } = setUp();
    const session = await broker.connect([], never);
    drop();
    await vi.waitFor(() => expect(clock.sleeping).toBe(1), patience);
    await session[Symbol.asyncDispose]();
    expect(clock.sleeping).toBe(0);
    expect(await session.closed).toEqual({ reason: "asked" });
  });

  test(
    "ends an outbox that is full, naming the limit, and one message at a time",
    { tags: "promise-B8" },
    async () => {
      const { broker, drop, clock } = setUp();
      await using session = await broker.connect([], never);
      drop();
      await vi.waitFor(() => expect(clock.sleeping).toBe(1), patience);
      const controller = new AbortController();
      const message = { topic: "t", payload: Buffer.from("1") };
      const held = Array.from({ length: 1_000 }, () => session.publish(message, controller.signal));
      await expect(session.publish(message, never)).rejects.toThrow("1000 messages wait");
      controller.abort(new Error("enough"));
      const results = await Promise.allSettled(held);
      expect(results.every((result) => result.status === "rejected")).toBe(true);
      const large = { topic: "t", payload: Buffer.alloc(64 * 1024 * 1024) };
      const two = [session.publish(large, never), session.publish(large, never)];
      await expect(session.publish(message, never)).rejects.toThrow(
        "134217728 of at most 134217728 bytes wait",
      );
      clock.advance(100);
      await Promise.all(two);
      await session.publish(message, never);
    },
  );
});

/**
 * A broker whose connections, after the first, are let through one by one and do not heed their
 * signal.
 */
function gated(onStateChange: (connected: boolean) => void = () => {}): {
  broker: ReconnectingBroker;
  memory: MemoryBroker;
  clock: HandClock;
  /** The tools that the connection in the gate asked for; undefined when none is there. */
  asked: () => readonly string[] | undefined;
  letThrough: () => void;
  refuse: () => void;
  /** Sessions that are opened from now on serve this tool from the beginning only. */
  refuseToServe: (tool: string) => void;
  /** Tools that sessions were told to leave. */
  left: readonly string[];
} {
  const clock = new HandClock();
  const memory = createMemoryBroker({ namespace: "ns" });
  let gate: (PromiseWithResolvers<void> & { tools: readonly string[] }) | undefined;
  let isFirst = true;
  let refused: string | undefined;
  const left: string[] = [];
  const inner: Broker = {
    kind: "gated",
    async connect(tools) {
      const opened = Promise.withResolvers<void>();
      if (isFirst) opened.resolve();
      else gate = { ...opened, tools };
      isFirst = false;
      await opened.promise;
      gate = undefined;
      const session = await memory.connect(tools, never);
      const leave = (tool: string): Promise<void> => Promise.resolve(void left.push(tool));
      Object.assign(session, { leave });
      if (refused === undefined) return session;
      const serve = async (tool: string, signal: AbortSignal): Promise<void> => {
        if (tool === refused) throw new BrokerError("another type", { transient: false });
        await session.serve(tool, signal);
      };
      return Object.assign(session, { serve });
    },
  };
  const log = { info: () => {}, warn: () => {} };
  const backoff = { baseMs: 100, capMs: 100 };
  return {
    broker: reconnecting(inner, { maxAttempts: 0, backoff, clock, log, onStateChange }),
    memory,
    clock,
    asked: () => gate?.tools,
    letThrough: () => gate?.resolve(),
    refuse: () => gate?.reject(unreachable),
    refuseToServe: (tool) => void (refused = tool),
    left,
  };
}

describe("a connection that is being made", () => {
  test("is brought to what was said meanwhile before it counts as connected", async () => {
    const { broker, memory, clock, asked, letThrough, left } = gated();
    await using session = await broker.connect(["kept", "left"], never);
    const deliveries = pull(session);
    memory.dropSessions();
    await vi.waitFor(() => expect(clock.sleeping).toBe(1), patience);
    clock.advance(100);
    await vi.waitFor(() => expect(asked()).toEqual(["kept", "left"]), patience);
    await session.leave("left", never);
    await session.serve("late", never);
    letThrough();
    await vi.waitFor(() => expect(session.connected).toBe(true), patience);
    expect(left).toEqual(["left"]);
    memory.publish(invokeTopic("ns", "late"), Buffer.from("1"));
    expect(textOf(await deliveries.next())).toBe("1");
  });

  test("is made once more, with all that is desired, when a tool of late cannot be served", async () => {
    const { broker, memory, clock, asked, letThrough, refuseToServe } = gated();
    await using session = await broker.connect(["kept"], never);
    memory.dropSessions();
    await vi.waitFor(() => expect(clock.sleeping).toBe(1), patience);
    clock.advance(100);
    await vi.waitFor(() => expect(asked()).toEqual(["kept"]), patience);
    await session.serve("late", never);
    refuseToServe("late");
    letThrough();
    await vi.waitFor(() => expect(clock.sleeping).toBe(1), patience);
    clock.advance(100);
    await vi.waitFor(() => expect(asked()).toEqual(["kept", "late"]), patience);
    letThrough();
    await vi.waitFor(() => expect(session.connected).toBe(true), patience);
  });

  test("takes nothing when the session was paused meanwhile", async () => {
    const { broker, memory, clock, asked, letThrough } = gated();
    await using session = await broker.connect(["echo"], never);
    memory.dropSessions();
    await vi.waitFor(() => expect(clock.sleeping).toBe(1), patience);
    clock.advance(100);
    await vi.waitFor(() => expect(asked()).toEqual(["echo"]), patience);
    const pausing = session.pause();
    letThrough();
    await pausing;
    expect(session.connected).toBe(true);
    memory.publish(invokeTopic("ns", "echo"), Buffer.from("1"));
    const pending = session.deliveries[Symbol.asyncIterator]().next();
    expect(await pending).toMatchObject({ done: true });
    await using other = await memory.connect(["echo"], never);
    expect(textOf(await pull(other).next())).toBe("1");
  });

  test("lets a pause and the deliveries end when it fails", async () => {
    const { broker, memory, clock, asked, refuse } = gated();
    await using session = await broker.connect(["echo"], never);
    const pending = session.deliveries[Symbol.asyncIterator]().next();
    memory.dropSessions();
    await vi.waitFor(() => expect(clock.sleeping).toBe(1), patience);
    clock.advance(100);
    await vi.waitFor(() => expect(asked()).toEqual(["echo"]), patience);
    const pausing = session.pause();
    refuse();
    await pausing;
    expect(await pending).toEqual({ done: true, value: undefined });
  });

  test("is closed again when the session was disposed of meanwhile", async () => {
    const { broker, memory, clock, asked, letThrough } = gated();
    const session = await broker.connect(["echo"], never);
    memory.dropSessions();
    await vi.waitFor(() => expect(clock.sleeping).toBe(1), patience);
    clock.advance(100);
    await vi.waitFor(() => expect(asked()).toBeDefined(), patience);
    const disposing = session[Symbol.asyncDispose]();
    letThrough();
    await disposing;
    expect(session.connected).toBe(false);
    expect(await session.closed).toEqual({ reason: "asked" });
  });
});

describe("a subscription", () => {
  test("is there before the next connection counts", async () => {
    const outcomes: PublishOutcome[] = [];
    const { broker, memory, clock, letThrough, asked } = gated((connected) => {
      if (connected) outcomes.push(memory.publish("t", Buffer.from('"at once"')));
    });
    await using session = await broker.connect([], never);
    await using subscription = await session.subscribe("t", never);
    const heard = hear(subscription);
    memory.dropSessions();
    await vi.waitFor(() => expect(clock.sleeping).toBe(1), patience);
    expect(memory.publish("t", Buffer.from('"lost"'))).toBe("unroutable");
    clock.advance(100);
    await vi.waitFor(() => expect(asked()).toBeDefined(), patience);
    letThrough();
    expect(textOf(await heard.next())).toBe('"at once"');
    expect(outcomes).toEqual(["unroutable", "confirmed"]);
  });

  test("that is asked for while there is no connection waits for one", async () => {
    const { broker, memory, clock, letThrough, asked } = gated();
    await using session = await broker.connect([], never);
    memory.dropSessions();
    await vi.waitFor(() => expect(clock.sleeping).toBe(1), patience);
    const controller = new AbortController();
    const { signal } = controller;
    const [subscribing, impatient] = [
      session.subscribe("t", never),
      session.subscribe("t", signal),
    ];
    controller.abort(new Error("enough"));
    await expect(impatient).rejects.toThrow("enough");
    expect(getEventListeners(signal, "abort")).toEqual([]);
    clock.advance(100);
    await vi.waitFor(() => expect(asked()).toBeDefined(), patience);
    letThrough();
    await using subscription = await subscribing;
    memory.publish("t", Buffer.from("1"));
    expect(textOf(await hear(subscription).next())).toBe("1");
  });

  test("that was disposed of is not made again", async () => {
    const { broker, memory, clock, letThrough, asked } = gated();
    await using session = await broker.connect([], never);
    const subscription = await session.subscribe("t", never);
    memory.dropSessions();
    await vi.waitFor(() => expect(clock.sleeping).toBe(1), patience);
    await subscription[Symbol.asyncDispose]();
    clock.advance(100);
    await vi.waitFor(() => expect(asked()).toBeDefined(), patience);
    letThrough();
    await vi.waitFor(() => expect(session.connected).toBe(true), patience);
    expect(memory.publish("t", Buffer.from("1"))).toBe("unroutable");
  });

  test("ends when the attempts are used up, as does one that is asked for", async () => {
    const { broker, clock, fail, drop } = setUp({ maxAttempts: 1 });
    await using session = await broker.connect([], never);
    await using subscription = await session.subscribe("t", never);
    const pending = subscription[Symbol.asyncIterator]().next();
    fail(unreachable);
    drop();
    await vi.waitFor(() => expect(clock.sleeping).toBe(1), patience);
    const refusal = expect(session.subscribe("t", never)).rejects.toThrow("session has ended");
    clock.advance(100);
    await refusal;
    expect(await pending).toEqual({ done: true, value: undefined });
  });
});

describe("a pause while there is no connection", () => {
  test("ends the deliveries at once, for one who waits as for one who asks later", async () => {
    const { broker, clock, drop } = setUp();
    await using session = await broker.connect(["echo"], never);
    const deliveries = session.deliveries[Symbol.asyncIterator]();
    const pending = deliveries.next();
    drop();
    await vi.waitFor(() => expect(clock.sleeping).toBe(1), patience);
    await session.pause();
    expect(await pending).toEqual({ done: true, value: undefined });
    expect(await deliveries.next()).toEqual({ done: true, value: undefined });
    expect(session.connected).toBe(false);
  });

  test("leaves publishing to the next connection", async () => {
    const { broker, clock, drop } = setUp();
    await using session = await broker.connect(["echo"], never);
    drop();
    await vi.waitFor(() => expect(clock.sleeping).toBe(1), patience);
    await session.pause();
    const publishing = session.publish({ topic: "t", payload: Buffer.from("1") }, never);
    clock.advance(100);
    await publishing;
    expect(session.connected).toBe(true);
  });
});

describe("a transient failure on a connection that stays up", () => {
  test("is the publisher's", async () => {
    const clock = new HandClock();
    const memory = createMemoryBroker({ namespace: "ns" });
    const broker = reconnecting(memory, {
      maxAttempts: 0,
      backoff: { baseMs: 1, capMs: 1 },
      clock,
      log: { info: () => {}, warn: () => {} },
    });
    await using session = await broker.connect(["echo"], never);
    const topic = "ns/a2a/v1/sam_remote_tool/invoke/echo";
    for (let n = 0; n < 10_000; n++) memory.publish(topic, Buffer.from("1"));
    const publishing = session.publish({ topic, payload: Buffer.from("1") }, never);
    await vi.waitFor(() => expect(clock.sleeping).toBe(1), patience);
    clock.advance(1_000);
    await expect(publishing).rejects.toThrow("10000 messages wait already");
    expect(session.connected).toBe(true);
  });
});
