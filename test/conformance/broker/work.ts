/**
 * Calls of tools: which come, how they look and in which order.
 */
import { expect, test } from "vitest";
import { invokeTopic, responseTopic } from "../../../worker/protocol/topics.ts";
import { type Suite, never, numbers, publishCalls, pull, textOf } from "./under-test.ts";

/** Runs the promises about served tools. */
export function describeWork({ create, capabilities }: Suite): void {
  test("delivers the calls of a tool that is served from the start", async () => {
    await using under = await create();
    await using session = await under.broker.connect(["echo"], never);
    const deliveries = pull(session);
    const topic = invokeTopic(under.namespace, "echo");
    await under.peer.publish(topic, '{"n": 1}');
    const delivery = await deliveries.next();
    expect(delivery).toMatchObject({ topic, redelivered: false, deliveryCount: 1 });
    expect(textOf(delivery)).toBe('{"n": 1}');
  });

  test("delivers the calls of a tool that is served later", async () => {
    await using under = await create();
    await using session = await under.broker.connect([], never);
    await session.serve("late", never);
    await publishCalls(under, "late", ['"hello"']);
    expect(textOf(await pull(session).next())).toBe('"hello"');
  });

  const afterLeaving = capabilities.shares
    ? "goes on delivering calls of a tool that it left: others of its group may serve it"
    : "delivers no call that is published after leaving its tool";
  test(afterLeaving, async () => {
    await using under = await create();
    await using session = await under.broker.connect(["gone", "kept"], never);
    const deliveries = pull(session);
    await session.leave("gone", never);
    await publishCalls(under, "gone", ["1"]);
    await publishCalls(under, "kept", ["2"]);
    for (const text of capabilities.shares ? ["1", "2"] : ["2"])
      expect(textOf(await deliveries.next())).toBe(text);
  });

  test("delivers nothing of tools that nobody serves, and of other namespaces", async () => {
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
    await publishCalls(under, "echo", ["1", "2"]);
    expect(textOf(await deliveries.next())).toBe("1");
    expect(textOf(await deliveries.next())).toBe("2");
    await session.leave("echo", never);
    await session.leave("echo", never);
  });

  test("serves a tool again that it had left", async () => {
    await using under = await create();
    await using session = await under.broker.connect(["echo"], never);
    await session.leave("echo", never);
    await session.serve("echo", never);
    await publishCalls(under, "echo", ["1"]);
    expect(textOf(await pull(session).next())).toBe("1");
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
    await publishCalls(under, "echo", [payload]);
    const delivery = await pull(session).next();
    expect(textOf(delivery) === payload).toBe(true);
    const topic = responseTopic(under.namespace, "Agent", "1");
    await session.publish({ topic, payload: delivery.payload }, never);
    expect((await heard()).payload === payload).toBe(true);
  });

  test("delivers the calls of each tool in order of arrival, and waits while nobody pulls", async () => {
    await using under = await create();
    await using session = await under.broker.connect(["a", "b"], never);
    for (const n of numbers(10)) {
      await publishCalls(under, "a", [n]);
      await publishCalls(under, "b", [n]);
    }
    const deliveries = pull(session);
    const came = { a: [] as string[], b: [] as string[] };
    for (let count = 0; count < 20; count++) {
      const delivery = await deliveries.next();
      const isOfA = delivery.topic === invokeTopic(under.namespace, "a");
      came[isOfA ? "a" : "b"].push(textOf(delivery));
    }
    expect(came).toEqual({ a: numbers(10), b: numbers(10) });
  });

  test("settles any number of times", async () => {
    await using under = await create();
    await using session = await under.broker.connect(["echo"], never);
    const deliveries = pull(session);
    await publishCalls(under, "echo", ["1"]);
    const delivery = await deliveries.next();
    await delivery.settle("accepted");
    await delivery.settle("accepted");
    await delivery.settle("failed");
    await publishCalls(under, "echo", ["2"]);
    expect(textOf(await deliveries.next())).toBe("2");
  });
}
