/**
 * Messages that everybody hears who subscribes.
 */
import { getEventListeners } from "node:events";
import { describe, expect, test, vi } from "vitest";
import { invokeTopic } from "../../../worker/protocol/topics.ts";
import { patience } from "../../support/patience.ts";
import {
  type BrokerUnderTest,
  type Suite,
  hear,
  heldResources,
  never,
  publishCalls,
  pull,
  textOf,
  topicIn,
} from "./under-test.ts";

/** Runs the promises about subscriptions. */
export function describeSubscriptions(suite: Suite): void {
  describe("a subscription", () => {
    describeHearing(suite);
    describeEnds(suite);
  });
}

function describeHearing({ create }: Suite): void {
  test("lets every session hear every message, as it came and in order", async () => {
    await using under = await create();
    await using one = await under.broker.connect([], never);
    await using other = await under.broker.connect([], never);
    const pattern = topicIn(under, "control/>");
    await using first = await one.subscribe(pattern, never);
    await using second = await other.subscribe(pattern, never);
    const topic = topicIn(under, "control/cancel");
    for (const text of ["1", "2", '"€ 年"']) {
      await under.peer.publish(topic, text, { clientId: "agent", n: 1 });
    }
    for (const subscription of [first, second]) {
      const heard = hear(subscription);
      const messages = [await heard.next(), await heard.next(), await heard.next()];
      expect(messages.map((message) => JSON.parse(textOf(message)) as unknown)).toEqual([
        1,
        2,
        "€ 年",
      ]);
      for (const message of messages) {
        expect(message).toMatchObject({ topic, properties: { clientId: "agent", n: "1" } });
      }
      expect(subscription.dropped).toBe(0);
    }
  });

  test("hears what sessions publish, its own included", async () => {
    await using under = await create();
    await using one = await under.broker.connect([], never);
    await using other = await under.broker.connect([], never);
    await using subscription = await one.subscribe(topicIn(under, "control/*"), never);
    const heard = hear(subscription);
    for (const [session, text] of [
      [one, "1"],
      [other, "2"],
    ] as const) {
      const topic = topicIn(under, "control/cancel");
      await session.publish({ topic, payload: Buffer.from(text) }, never);
      expect(textOf(await heard.next())).toBe(text);
    }
  });

  test.for([
    ["a/b", ["a/b"], ["a", "a/b/c", "a/bb", "b/a"]],
    ["a/*", ["a/b", "a/c"], ["a", "a/b/c", "b/a"]],
    ["a/*/c", ["a/b/c", "a/d/c"], ["a/c", "a/b/d/c", "a/b/d", "a/b/c/d"]],
    ["a/>", ["a/b", "a/b/c", "a/b/c/d"], ["a", "b/a", "aa/b"]],
    ["a/*/>", ["a/b/c", "a/b/c/d"], ["a", "a/b", "b/b/c"]],
    ["*/b", ["a/b", "c/b"], ["b", "a/c", "a/a/b"]],
    ["a.b/*", ["a.b/c"], ["a/b/c", "a%2Eb/c", "a.b"]],
    ["a#b/>", ["a#b/c"], ["a/b/c", "a%23b/c", "acb/c"]],
    ["年/*", ["年/é"], ["月/é", "年/é/x"]],
  ] as const)("hears of %j what matches and nothing else", async ([pattern, matching, other]) => {
    await using under = await create();
    await using session = await under.broker.connect([], never);
    await using subscription = await session.subscribe(topicIn(under, pattern), never);
    for (const topic of [...other, ...matching]) {
      await under.peer.publish(topicIn(under, topic), "1");
    }
    const heard = hear(subscription);
    for (const topic of matching) expect((await heard.next()).topic).toBe(topicIn(under, topic));
  });

  test("hears nothing that was published before", async () => {
    await using under = await create();
    await using session = await under.broker.connect([], never);
    const topic = topicIn(under, "control/cancel");
    await under.peer.publish(topic, '"early"');
    await using subscription = await session.subscribe(topic, never);
    await under.peer.publish(topic, '"late"');
    expect(textOf(await hear(subscription).next())).toBe('"late"');
  });

  test("takes no call away from who serves the tool", async () => {
    await using under = await create();
    await using session = await under.broker.connect(["echo"], never);
    await using subscription = await session.subscribe(invokeTopic(under.namespace, "*"), never);
    await publishCalls(under, "echo", ["1"]);
    const deliveries = pull(session);
    expect(textOf(await hear(subscription).next())).toBe("1");
    const delivery = await deliveries.next();
    expect(textOf(delivery)).toBe("1");
    await delivery.settle("accepted");
    await publishCalls(under, "echo", ["2"]);
    expect(textOf(await deliveries.next())).toBe("2");
  });

  test("goes on in a session that is paused", async () => {
    await using under = await create();
    await using session = await under.broker.connect(["echo"], never);
    await using subscription = await session.subscribe(topicIn(under, "control/>"), never);
    await session.pause();
    await under.peer.publish(topicIn(under, "control/cancel"), "1");
    expect(textOf(await hear(subscription).next())).toBe("1");
  });
}

function describeEnds({ create, capabilities }: Suite): void {
  test("ends when it is disposed of, and only it", async () => {
    await using under = await create();
    await using session = await under.broker.connect(["echo"], never);
    const pattern = topicIn(under, "control/*");
    await using kept = await session.subscribe(pattern, never);
    await using wider = await session.subscribe(topicIn(under, "control/>"), never);
    const subscription = await session.subscribe(pattern, never);
    const heard = subscription[Symbol.asyncIterator]();
    const pending = heard.next();
    await subscription[Symbol.asyncDispose]();
    await subscription[Symbol.asyncDispose]();
    expect(await pending).toEqual({ done: true, value: undefined });
    await publishControl(under, "1");
    await publishControl(under, "2");
    expect(await heard.next()).toEqual({ done: true, value: undefined });
    for (const other of [kept, wider]) {
      const messages = hear(other);
      expect([textOf(await messages.next()), textOf(await messages.next())]).toEqual(["1", "2"]);
    }
    await publishCalls(under, "echo", ["3"]);
    expect(textOf(await pull(session).next())).toBe("3");
  });

  test("ends with its session, which does not end the others'", async () => {
    await using under = await create();
    await using session = await under.broker.connect([], never);
    await using other = await under.broker.connect([], never);
    const pattern = topicIn(under, "control/*");
    await using subscription = await session.subscribe(pattern, never);
    await using others = await other.subscribe(pattern, never);
    const pending = subscription[Symbol.asyncIterator]().next();
    await session[Symbol.asyncDispose]();
    expect(await pending).toEqual({ done: true, value: undefined });
    await publishControl(under, "1");
    expect(textOf(await hear(others).next())).toBe("1");
  });

  if (!capabilities.reconnects) {
    test("ends when the connection breaks", async () => {
      await using under = await create();
      await using session = await under.broker.connect([], never);
      await using subscription = await session.subscribe(topicIn(under, "control/*"), never);
      const pending = subscription[Symbol.asyncIterator]().next();
      await under.cutConnections();
      expect(await pending).toEqual({ done: true, value: undefined });
      expect((await session.closed).reason).toBe("lost");
    });
  } else {
    test("goes on after the connection broke", async () => {
      await using under = await create();
      await using session = await under.broker.connect([], never);
      await using subscription = await session.subscribe(topicIn(under, "control/*"), never);
      const heard = hear(subscription);
      for (const text of ["1", "2"]) {
        const pending = heard.next();
        await under.cutConnections();
        // Goes out on the next connection, and is heard there: no connection counts without its
        // subscriptions.
        const topic = topicIn(under, "control/cancel");
        await session.publish({ topic, payload: Buffer.from(text) }, never);
        expect(textOf(await pending)).toBe(text);
      }
    });
  }

  test("releases what it holds when it is disposed of", async () => {
    await using under = await create();
    const { signal } = new AbortController();
    await using session = await under.broker.connect([], never);
    const before = heldResources();
    const subscription = await session.subscribe(topicIn(under, "control/*"), signal);
    const heard = subscription[Symbol.asyncIterator]();
    await publishControl(under, "1");
    await heard.next();
    const pending = heard.next();
    await subscription[Symbol.asyncDispose]();
    await pending;
    await vi.waitFor(() => expect(heldResources()).toEqual(before), patience);
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });
}

async function publishControl(under: BrokerUnderTest, text: string): Promise<void> {
  await under.peer.publish(topicIn(under, "control/cancel"), text);
}
