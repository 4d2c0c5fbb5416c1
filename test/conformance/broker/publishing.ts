/**
 * What sessions publish.
 */
import { expect, test } from "vitest";
import { invokeTopic, responseTopic } from "../../../worker/protocol/topics.ts";
import { type Suite, never, numbers } from "./under-test.ts";

/** Runs the promises about publishing. */
export function describePublishing({ name, create, capabilities }: Suite): void {
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

  test("keeps the time that is given, however late it sends", async () => {
    await using under = await create();
    await using session = await under.broker.connect([], never);
    const topic = responseTopic(under.namespace, "Agent", "1");
    const heard = await under.peer.listen(topic);
    const timestamp = 1_795_200_128_599;
    const properties = { clientId: "w", timestamp };
    await session.publish({ topic, payload: Buffer.from("1"), properties }, never);
    expect((await heard()).properties).toMatchObject(properties);
  });

  test("keeps the order of what is published without waiting", async () => {
    await using under = await create();
    await using session = await under.broker.connect([], never);
    const heard = await under.peer.listen(responseTopic(under.namespace, "Agent", ">"));
    const topic = responseTopic(under.namespace, "Agent", "1");
    const payloads = numbers(100);
    await Promise.all(
      payloads.map((payload) => session.publish({ topic, payload: Buffer.from(payload) }, never)),
    );
    for (const payload of payloads) expect((await heard()).payload).toBe(payload);
  });

  test("confirms what somebody hears, and the call of a served tool", async () => {
    await using under = await create();
    await using session = await under.broker.connect(["echo"], never);
    await under.peer.listen(responseTopic(under.namespace, "Agent", ">"));
    const payload = Buffer.from("1");
    for (const topic of [
      responseTopic(under.namespace, "Agent", "1"),
      invokeTopic(under.namespace, "echo"),
    ]) {
      expect(await session.publish({ topic, payload }, never)).toBe("confirmed");
    }
  });

  if (!capabilities.tellsUnroutable) {
    test("confirms what nobody hears, where it cannot tell", async () => {
      await using under = await create();
      await using session = await under.broker.connect([], never);
      const message = { topic: "nobody/here", payload: Buffer.from("1") };
      expect(await session.publish(message, never)).toBe("confirmed");
    });
  }

  test("tells that nobody hears what it publishes", async ({ skip }) => {
    skip(!capabilities.tellsUnroutable, `the ${name} broker does not tell who hears a message`);
    await using under = await create();
    await using session = await under.broker.connect([], never);
    const messages = numbers(3).map((payload) => ({
      topic: "nobody/here",
      payload: Buffer.from(payload),
    }));
    const outcomes = messages.map((message) => session.publish(message, never));
    expect(await Promise.all(outcomes)).toEqual(["unroutable", "unroutable", "unroutable"]);
    const topic = responseTopic(under.namespace, "Agent", "1");
    await under.peer.listen(topic);
    for (const [heard, outcome] of [
      [topic, "confirmed"],
      ["nobody/here", "unroutable"],
    ] as const) {
      expect(await session.publish({ topic: heard, payload: Buffer.from("1") }, never)).toBe(
        outcome,
      );
    }
  });
}
