/**
 * What every broker adapter promises (`worker/broker/broker.ts`), as tests to run for each of them.
 */
import { getEventListeners } from "node:events";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { invokeTopic, responseTopic } from "../../worker/protocol/topics.ts";
import type { Broker, BrokerSession, Delivery } from "../../worker/broker/broker.ts";
import { patience } from "../support/patience.ts";

/** A message that the other side heard; `payload` is its JSON text. */
export interface HeardMessage {
  readonly topic: string;
  readonly payload: string;
  readonly properties: Readonly<Record<string, unknown>>;
}

/** The agents' side of the broker. */
export interface Peer {
  publish(
    topic: string,
    payload: string,
    properties?: Readonly<Record<string, string | number>>,
  ): Promise<void>;
  /** Subscribes; the returned function waits for the next message. */
  listen(pattern: string): Promise<() => Promise<HeardMessage>>;
}

/** A broker that runs, for one test. */
export interface BrokerUnderTest extends AsyncDisposable {
  readonly broker: Broker;
  readonly namespace: string;
  readonly peer: Peer;
  /** Breaks every connection of the worker. */
  cutConnections(): void;
}

/** In what brokers may differ. */
export interface BrokerCapabilities {
  /** Sessions that serve one tool share its calls; otherwise each gets a copy. */
  readonly shares: boolean;
  /** A call that was not settled, or settled `failed`, comes again. */
  readonly redelivers: boolean;
  /** A session outlives the loss of its connection. */
  readonly reconnects: boolean;
}

/** Runs the promises of the broker contract against one adapter. */
export function describeBroker(
  name: string,
  options: { create: () => Promise<BrokerUnderTest>; capabilities: BrokerCapabilities },
): void {
  const { create, capabilities } = options;
  const never = new AbortController().signal;

  describe(`the ${name} broker`, () => {
    test("delivers the calls of a tool that is served from the start", async () => {
      await using under = await create();
      await using session = await under.broker.connect(["echo"], never);
      const deliveries = pull(session);
      const topic = invokeTopic(under.namespace, "echo");
      await under.peer.publish(topic, '{"n": 1}');
      const delivery = await deliveries.next();
      expect(delivery).toMatchObject({ topic, redelivered: false });
      expect(textOf(delivery)).toBe('{"n": 1}');
    });

    test("delivers the calls of a tool that is served later", async () => {
      await using under = await create();
      await using session = await under.broker.connect([], never);
      await session.serve("late", never);
      await under.peer.publish(invokeTopic(under.namespace, "late"), '"hello"');
      expect(textOf(await pull(session).next())).toBe('"hello"');
    });

    test("delivers no call that is published after leaving its tool", async () => {
      await using under = await create();
      await using session = await under.broker.connect(["gone", "kept"], never);
      const deliveries = pull(session);
      await session.leave("gone", never);
      await under.peer.publish(invokeTopic(under.namespace, "gone"), "1");
      await under.peer.publish(invokeTopic(under.namespace, "kept"), "2");
      expect(textOf(await deliveries.next())).toBe("2");
    });

    test("delivers nothing of other tools and other namespaces", async () => {
      await using under = await create();
      await using session = await under.broker.connect(["echo"], never);
      await under.peer.publish(invokeTopic(under.namespace, "echo2"), "1");
      await under.peer.publish(invokeTopic(`other/${under.namespace}`, "echo"), "2");
      await under.peer.publish(invokeTopic(under.namespace, "echo"), "3");
      expect(textOf(await pull(session).next())).toBe("3");
    });

    test("serves and leaves idempotently, without duplicates", async () => {
      await using under = await create();
      await using session = await under.broker.connect(["echo"], never);
      const deliveries = pull(session);
      await session.serve("echo", never);
      await session.serve("echo", never);
      await session.leave("never-served", never);
      await under.peer.publish(invokeTopic(under.namespace, "echo"), "1");
      await under.peer.publish(invokeTopic(under.namespace, "echo"), "2");
      expect(textOf(await deliveries.next())).toBe("1");
      expect(textOf(await deliveries.next())).toBe("2");
      await session.leave("echo", never);
      await session.leave("echo", never);
    });

    test("hands on payload and properties as they came", async () => {
      await using under = await create();
      await using session = await under.broker.connect(["echo"], never);
      const payload = JSON.stringify({ text: '€ 年 😀 \u0000 \n \\ "', "": [], deep: [[{}]] });
      await under.peer.publish(invokeTopic(under.namespace, "echo"), payload, {
        replyTo: "ns/répondre",
        __proto__x: "safe",
        timestamp: 1_795_200_128_599,
      });
      const delivery = await pull(session).next();
      expect(JSON.parse(textOf(delivery))).toEqual(JSON.parse(payload));
      expect(delivery.properties).toEqual({
        replyTo: "ns/répondre",
        __proto__x: "safe",
        timestamp: "1795200128599",
      });
    });

    test("carries a payload of 5 MB in both directions", async () => {
      await using under = await create();
      await using session = await under.broker.connect(["echo"], never);
      const heard = await under.peer.listen(responseTopic(under.namespace, "Agent", ">"));
      const payload = JSON.stringify({ data: "0123456789".repeat(500_000) });
      await under.peer.publish(invokeTopic(under.namespace, "echo"), payload);
      const delivery = await pull(session).next();
      expect(textOf(delivery) === payload).toBe(true);
      const topic = responseTopic(under.namespace, "Agent", "1");
      await session.publish({ topic, payload: delivery.payload }, never);
      expect((await heard()).payload === payload).toBe(true);
    });

    test("publishes with our properties and the time of sending", async () => {
      await using under = await create();
      await using session = await under.broker.connect([], never);
      const heard = await under.peer.listen(responseTopic(under.namespace, "Agent", ">"));
      const topic = responseTopic(under.namespace, "Agent", "1");
      const before = Date.now();
      const payload = Buffer.from('{"pretty":\n  "€"\n}');
      await session.publish({ topic, payload, properties: { clientId: "w", n: 1 } }, never);
      const message = await heard();
      expect(message.topic).toBe(topic);
      expect(JSON.parse(message.payload)).toEqual({ pretty: "€" });
      expect(message.properties).toMatchObject({ clientId: "w", n: 1 });
      const timestamp = message.properties["timestamp"] as number;
      expect(Number.isInteger(timestamp)).toBe(true);
      expect(timestamp).toBeGreaterThanOrEqual(before);
      expect(timestamp).toBeLessThanOrEqual(Date.now());
    });

    test("confirms a publish that nobody hears", async () => {
      await using under = await create();
      await using session = await under.broker.connect([], never);
      await session.publish({ topic: "nobody/here", payload: Buffer.from("1") }, never);
    });

    test("keeps the order of what is published without waiting", async () => {
      await using under = await create();
      await using session = await under.broker.connect([], never);
      const heard = await under.peer.listen(responseTopic(under.namespace, "Agent", ">"));
      const topic = responseTopic(under.namespace, "Agent", "1");
      const numbers = Array.from({ length: 100 }, (_, index) => index);
      await Promise.all(
        numbers.map((n) => session.publish({ topic, payload: Buffer.from(`${n}`) }, never)),
      );
      for (const n of numbers) expect((await heard()).payload).toBe(`${n}`);
    });

    test("delivers in order of arrival and waits while nobody pulls", async () => {
      await using under = await create();
      await using session = await under.broker.connect(["a", "b"], never);
      for (let n = 0; n < 20; n++) {
        await under.peer.publish(invokeTopic(under.namespace, n % 2 ? "a" : "b"), `${n}`);
      }
      const deliveries = pull(session);
      for (let n = 0; n < 20; n++) expect(textOf(await deliveries.next())).toBe(`${n}`);
    });

    test("settles any number of times", async () => {
      await using under = await create();
      await using session = await under.broker.connect(["echo"], never);
      const deliveries = pull(session);
      await under.peer.publish(invokeTopic(under.namespace, "echo"), "1");
      const delivery = await deliveries.next();
      await delivery.settle("accepted");
      await delivery.settle("accepted");
      await delivery.settle("failed");
      await under.peer.publish(invokeTopic(under.namespace, "echo"), "2");
      expect(textOf(await deliveries.next())).toBe("2");
    });

    test("stops intake when paused, ends, and goes on publishing and settling", async () => {
      await using under = await create();
      await using session = await under.broker.connect(["echo"], never);
      const deliveries = session.deliveries[Symbol.asyncIterator]();
      await under.peer.publish(invokeTopic(under.namespace, "echo"), "1");
      const first = await deliveries.next();
      const next = deliveries.next();
      await session.pause();
      await under.peer.publish(invokeTopic(under.namespace, "echo"), "2");
      expect(await next).toEqual({ done: true, value: undefined });
      expect(await deliveries.next()).toEqual({ done: true, value: undefined });
      const heard = await under.peer.listen(responseTopic(under.namespace, "Agent", ">"));
      const topic = responseTopic(under.namespace, "Agent", "1");
      await session.publish({ topic, payload: Buffer.from("3") }, never);
      expect((await heard()).payload).toBe("3");
      await (first.value as Delivery).settle("accepted");
      await session.leave("echo", never);
    });

    test("ends when paused before anybody has pulled", async () => {
      await using under = await create();
      await using session = await under.broker.connect(["echo"], never);
      await session.pause();
      await session.pause();
      expect(await restOf(session)).toEqual([]);
    });

    test("loses no call that came before the pause: what it does not hand out goes to others", async () => {
      await using under = await create();
      await using session = await under.broker.connect(["echo"], never);
      const numbers = Array.from({ length: 20 }, (_, n) => `${n}`);
      for (const n of numbers) await under.peer.publish(invokeTopic(under.namespace, "echo"), n);
      const first = await pull(session).next();
      await first.settle("accepted");
      await session.pause();
      const handedOut = [textOf(first), ...(await restOf(session))];
      await session[Symbol.asyncDispose]();
      await using other = await under.broker.connect(["echo"], never);
      const left = pull(other);
      for (const n of numbers.slice(handedOut.length)) expect(textOf(await left.next())).toBe(n);
      expect(handedOut).toEqual(numbers.slice(0, handedOut.length));
    });

    test("serves nothing more once it is paused", async () => {
      await using under = await create();
      await using session = await under.broker.connect([], never);
      await session.pause();
      await session.serve("late", never);
      await under.peer.publish(invokeTopic(under.namespace, "late"), "1");
      expect(await restOf(session)).toEqual([]);
    });

    test("can be paused when it has ended", async () => {
      await using under = await create();
      const session = await under.broker.connect(["echo"], never);
      await session[Symbol.asyncDispose]();
      await session.pause();
    });

    test("ends as asked when it is disposed", async () => {
      await using under = await create();
      const session = await under.broker.connect(["echo"], never);
      const pending = session.deliveries[Symbol.asyncIterator]().next();
      await session[Symbol.asyncDispose]();
      await session[Symbol.asyncDispose]();
      expect(await session.closed).toEqual({ reason: "asked" });
      expect(await pending).toEqual({ done: true, value: undefined });
      const message = { topic: "t", payload: Buffer.from("1") };
      await expect(session.publish(message, never)).rejects.toThrow("session has ended");
    });

    test("does nothing for a signal that has aborted", async () => {
      await using under = await create();
      await using session = await under.broker.connect([], never);
      const reason = new Error("no more");
      const aborted = AbortSignal.abort(reason);
      const message = { topic: "t", payload: Buffer.from("1") };
      await expect(under.broker.connect([], aborted)).rejects.toBe(reason);
      await expect(session.serve("echo", aborted)).rejects.toBe(reason);
      await expect(session.leave("echo", aborted)).rejects.toBe(reason);
      await expect(session.publish(message, aborted)).rejects.toBe(reason);
      await session.publish(message, never);
    });

    test("releases every resource of its sessions", async () => {
      await using under = await create();
      const before = heldResources();
      const signals = new AbortController();
      const session = await under.broker.connect(["echo"], signals.signal);
      const pending = session.deliveries[Symbol.asyncIterator]().next();
      await session.serve("other", signals.signal);
      await session.publish({ topic: "t", payload: Buffer.from("1") }, signals.signal);
      await session[Symbol.asyncDispose]();
      await pending;
      await vi.waitFor(() => expect(heldResources()).toEqual(before), patience);
      expect(getEventListeners(signals.signal, "abort")).toEqual([]);
    });

    if (capabilities.reconnects) {
      test("goes on serving and publishing after its connection broke", async () => {
        await using under = await create();
        await using session = await under.broker.connect(["echo"], never);
        const pending = pull(session).next();
        under.cutConnections();
        await session.publish({ topic: "t", payload: Buffer.from("1") }, never);
        await under.peer.publish(invokeTopic(under.namespace, "echo"), "2");
        expect(textOf(await pending)).toBe("2");
      });
    } else {
      test("ends as lost when its connection breaks", async () => {
        await using under = await create();
        await using session = await under.broker.connect(["echo"], never);
        const pending = session.deliveries[Symbol.asyncIterator]().next();
        under.cutConnections();
        const end = await session.closed;
        expect(end.reason).toBe("lost");
        expect(end.cause).toMatchObject({ name: "BrokerError", transient: true });
        expect(await pending).toEqual({ done: true, value: undefined });
        const message = { topic: "t", payload: Buffer.from("1") };
        await expect(session.publish(message, never)).rejects.toMatchObject({ transient: true });
      });
    }

    if (capabilities.shares) {
      test("shares the calls of a tool between sessions", async () => {
        await using under = await create();
        await using one = await under.broker.connect(["echo"], never);
        await using other = await under.broker.connect(["echo"], never);
        const deliveries = [pull(one).next(), pull(other).next()];
        await under.peer.publish(invokeTopic(under.namespace, "echo"), "1");
        await under.peer.publish(invokeTopic(under.namespace, "echo"), "2");
        expect((await Promise.all(deliveries)).map(textOf).toSorted()).toEqual(["1", "2"]);
      });
    } else {
      test("gives every session a copy of a call", async () => {
        await using under = await create();
        await using one = await under.broker.connect(["echo"], never);
        await using other = await under.broker.connect(["echo"], never);
        await under.peer.publish(invokeTopic(under.namespace, "echo"), "1");
        expect(textOf(await pull(one).next())).toBe("1");
        expect(textOf(await pull(other).next())).toBe("1");
      });
    }

    test("says whether it redelivers", async () => {
      await using under = await create();
      await using session = await under.broker.connect([], never);
      expect(session.redelivers).toBe(capabilities.redelivers);
    });

    describe("redelivery", () => {
      beforeEach((context) => {
        context.skip(!capabilities.redelivers, `the ${name} broker redelivers nothing`);
      });

      test("brings a failed call again, and a settled one not", async () => {
        await using under = await create();
        await using session = await under.broker.connect(["echo"], never);
        const deliveries = pull(session);
        await under.peer.publish(invokeTopic(under.namespace, "echo"), "1");
        await (await deliveries.next()).settle("failed");
        const again = await deliveries.next();
        expect(textOf(again)).toBe("1");
        expect(again.redelivered).toBe(true);
        await again.settle("rejected");
        await under.peer.publish(invokeTopic(under.namespace, "echo"), "2");
        expect(await deliveries.next()).toMatchObject({ redelivered: false });
      });

      test("brings what a paused session settles as failed to another", async () => {
        await using under = await create();
        await using former = await under.broker.connect(["echo"], never);
        const deliveries = former.deliveries[Symbol.asyncIterator]();
        await under.peer.publish(invokeTopic(under.namespace, "echo"), "1");
        const delivery = (await deliveries.next()).value as Delivery;
        await former.pause();
        await delivery.settle("failed");
        await delivery.settle("accepted");
        await using session = await under.broker.connect(["echo"], never);
        const again = await pull(session).next();
        expect([textOf(again), again.redelivered]).toEqual(["1", true]);
        expect(await deliveries.next()).toEqual({ done: true, value: undefined });
      });

      test("brings what a session left unsettled to another, in order", async () => {
        await using under = await create();
        const topic = invokeTopic(under.namespace, "echo");
        await using former = await under.broker.connect(["echo"], never);
        const deliveries = pull(former);
        for (const n of ["1", "2", "3", "4"]) await under.peer.publish(topic, n);
        await (await deliveries.next()).settle("accepted");
        await deliveries.next();
        await deliveries.next();
        await former[Symbol.asyncDispose]();
        await using session = await under.broker.connect(["echo"], never);
        const after = pull(session);
        const expected = [
          ["2", true],
          ["3", true],
          ["4", false],
        ];
        for (const call of expected) {
          const delivery = await after.next();
          expect([textOf(delivery), delivery.redelivered]).toEqual(call);
        }
      });
    });
  });
}

/** Pulls deliveries one by one; fails when the session ends instead. */
export function pull(session: BrokerSession): { next(): Promise<Delivery> } {
  const iterator = session.deliveries[Symbol.asyncIterator]();
  return {
    async next() {
      const result = await iterator.next();
      if (result.done) throw new Error("the session ended");
      return result.value;
    },
  };
}

/** The JSON texts of everything that a session hands out until its deliveries end. */
async function restOf(session: BrokerSession): Promise<readonly string[]> {
  const texts: string[] = [];
  for await (const delivery of session.deliveries) {
    texts.push(textOf(delivery));
    await delivery.settle("accepted");
  }
  return texts;
}

/** The JSON text of a delivery. */
export function textOf(delivery: Delivery): string {
  return Buffer.from(delivery.payload).toString();
}

/** Sockets that keep this process alive. */
function heldResources(): readonly string[] {
  return process.getActiveResourcesInfo().filter((name) => name.startsWith("TCP"));
}
