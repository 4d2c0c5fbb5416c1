/**
 * How sessions stop, end and are lost, and that they leave nothing behind.
 */
import { getEventListeners } from "node:events";
import { expect, test, vi } from "vitest";
import type { Delivery } from "../../../worker/broker/broker.ts";
import { responseTopic } from "../../../worker/protocol/topics.ts";
import { patience } from "../../support/patience.ts";
import {
  type Suite,
  heldResources,
  never,
  numbers,
  publishCalls,
  pull,
  restOf,
  textOf,
  topicIn,
} from "./under-test.ts";

const message = { topic: "t", payload: Buffer.from("1") };

/** Runs the promises about pausing, disposing and losing sessions. */
export function describeEnding({ create, capabilities }: Suite): void {
  test("stops intake when paused, ends, and goes on publishing and settling", async () => {
    await using under = await create();
    await using session = await under.broker.connect(["echo"], never);
    const deliveries = session.deliveries[Symbol.asyncIterator]();
    await publishCalls(under, "echo", ["1"]);
    const first = await deliveries.next();
    const next = deliveries.next();
    await session.pause();
    await publishCalls(under, "echo", ["2"]);
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
    const calls = numbers(20);
    await publishCalls(under, "echo", calls);
    const first = await pull(session).next();
    await first.settle("accepted");
    await session.pause();
    const handedOut = [textOf(first), ...(await restOf(session))];
    await session[Symbol.asyncDispose]();
    await using other = await under.broker.connect(["echo"], never);
    const left = pull(other);
    for (const call of calls.slice(handedOut.length)) expect(textOf(await left.next())).toBe(call);
    expect(handedOut).toEqual(calls.slice(0, handedOut.length));
  });

  test("serves nothing more once it is paused", async () => {
    await using under = await create();
    await using session = await under.broker.connect([], never);
    await session.pause();
    await session.serve("late", never);
    await publishCalls(under, "late", ["1"]);
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
    await expect(session.publish(message, never)).rejects.toThrow("session has ended");
    await expect(session.subscribe("t", never)).rejects.toThrow("session has ended");
  });

  test("does nothing for a signal that has aborted", async () => {
    await using under = await create();
    await using session = await under.broker.connect([], never);
    const reason = new Error("no more");
    const aborted = AbortSignal.abort(reason);
    await expect(under.broker.connect([], aborted)).rejects.toBe(reason);
    await expect(session.serve("echo", aborted)).rejects.toBe(reason);
    await expect(session.leave("echo", aborted)).rejects.toBe(reason);
    await expect(session.publish(message, aborted)).rejects.toBe(reason);
    await expect(session.subscribe("t", aborted)).rejects.toBe(reason);
    await session.publish(message, never);
  });

  test("releases every resource of its sessions", async () => {
    await using under = await create();
    const before = heldResources();
    const signals = new AbortController();
    const session = await under.broker.connect(["echo"], signals.signal);
    const pending = session.deliveries[Symbol.asyncIterator]().next();
    await session.serve("other", signals.signal);
    await session.subscribe(topicIn(under, "control/>"), signals.signal);
    await session.publish(message, signals.signal);
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
      await under.cutConnections();
      await session.publish(message, never);
      await publishCalls(under, "echo", ["2"]);
      expect(textOf(await pending)).toBe("2");
    });
  } else {
    test("ends as lost when its connection breaks", async () => {
      await using under = await create();
      await using session = await under.broker.connect(["echo"], never);
      const pending = session.deliveries[Symbol.asyncIterator]().next();
      await under.cutConnections();
      const end = await session.closed;
      expect(end.reason).toBe("lost");
      expect(end.cause).toMatchObject({ name: "BrokerError", transient: true });
      expect(await pending).toEqual({ done: true, value: undefined });
      await expect(session.publish(message, never)).rejects.toMatchObject({ transient: true });
    });
  }
}
