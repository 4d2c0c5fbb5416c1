/**
 * How much a worker takes of the calls of many tools: RabbitMQ's own limit is one for each queue.
 */
import { describe, expect, test, vi } from "vitest";
import type { SessionOptions } from "../../../worker/broker/amqp/session.ts";
import type { BrokerSession, Delivery } from "../../../worker/broker/broker.ts";
import { invokeTopic } from "../../../worker/protocol/topics.ts";
import { connectAmqpPeer } from "../../conformance/amqp-peer.ts";
import { Acceptor, pull, textOf } from "../../conformance/broker/under-test.ts";
import { patience } from "../../support/patience.ts";
import { amqpBroker } from "../../support/rabbitmq-options.ts";
import { type Operator, connectOperator, never, newNamespace, useRabbitMQ } from "./node.ts";

const node = useRabbitMQ();

const tools = Array.from({ length: 10 }, (_, n) => `tool-${n}`);
const maxUnsettled = 2;

/** A session that serves all tools. */
function serve(namespace: string, options: Partial<SessionOptions> = {}): Promise<BrokerSession> {
  const broker = amqpBroker({ url: node().url, namespace, maxUnsettled, ...options });
  return broker.connect(tools, never);
}

/** How many calls wait at the broker: of those that were published, the others are held by workers. */
async function waitingCalls({ channel }: Operator, namespace: string): Promise<number> {
  let calls = 0;
  for (const tool of tools) {
    const queue = await channel.checkQueue(`${namespace}/q/sandbox/tool/${tool}`);
    calls += queue.messageCount;
  }
  return calls;
}

/** Waits until nobody is sent calls unasked. RabbitMQ counts a consumer until what came through it is settled. */
async function whenNobodyListens(
  { channel }: Operator,
  namespace: string,
  held: () => number | Promise<number>,
): Promise<void> {
  await vi.waitFor(async () => {
    let consumers = 0;
    for (const tool of tools) {
      const queue = await channel.checkQueue(`${namespace}/q/sandbox/tool/${tool}`);
      consumers += queue.consumerCount;
    }
    expect(consumers).toBeLessThanOrEqual(await held());
  }, patience);
}

describe("a worker whose slots are all busy", () => {
  test("leaves the calls of every tool to another, as they came", async () => {
    const namespace = newNamespace();
    await using peer = await connectAmqpPeer(node().url, namespace);
    await using operator = await connectOperator(node().url);
    await using busy = await serve(namespace);
    const taken = pull(busy);
    await peer.publish(invokeTopic(namespace, tools[0]!), "0");
    await peer.publish(invokeTopic(namespace, tools[0]!), "1");
    const running = [await taken.next(), await taken.next()];
    await whenNobodyListens(operator, namespace, () => running.length);
    const calls = tools.flatMap((tool) => [`${tool} a`, `${tool} b`]);
    for (const call of calls) await peer.publish(invokeTopic(namespace, call.slice(0, -2)), call);
    expect(await waitingCalls(operator, namespace)).toBe(calls.length);
    await using free = await serve(namespace);
    const others = pull(free);
    const seen: string[] = [];
    while (seen.length < calls.length) {
      const { payload, deliveryCount, settle } = await others.next();
      expect(deliveryCount).toBe(1);
      seen.push(Buffer.from(payload).toString());
      await settle("accepted");
    }
    expect(seen.toSorted()).toEqual(calls.toSorted());
  });

  test("takes from every queue again when they are free", async () => {
    const namespace = newNamespace();
    await using peer = await connectAmqpPeer(node().url, namespace);
    await using operator = await connectOperator(node().url);
    await using session = await serve(namespace);
    const taken = pull(session);
    for (const tool of tools.slice(0, maxUnsettled))
      await peer.publish(invokeTopic(namespace, tool), "first");
    const running = [await taken.next(), await taken.next()];
    await whenNobodyListens(operator, namespace, () => running.length);
    for (const delivery of running) await delivery.settle("accepted");
    for (const tool of tools) await peer.publish(invokeTopic(namespace, tool), "again");
    const topics = new Set<string>();
    while (topics.size < tools.length) {
      const delivery = await taken.next();
      topics.add(delivery.topic);
      await delivery.settle("accepted");
    }
  });
});

test("a worker that is left with one queue, and calls of former consumers, takes no more than it may hold", async () => {
  const namespace = newNamespace();
  const [tool, ...rest] = tools as [string, ...string[]];
  await using peer = await connectAmqpPeer(node().url, namespace);
  await using operator = await connectOperator(node().url);
  await using session = await serve(namespace, { maxUnsettled: 3 });
  const taken = pull(session);
  for (const call of ["1", "2", "3"]) await peer.publish(invokeTopic(namespace, tool), call);
  const running = [await taken.next(), await taken.next(), await taken.next()];
  await whenNobodyListens(operator, namespace, () => running.length);
  for (const left of rest) await session.leave(left, never);
  const calls = ["4", "5", "6", "7"];
  for (const call of calls) await peer.publish(invokeTopic(namespace, tool), call);
  await running[0]!.settle("accepted");
  expect(textOf(await taken.next())).toBe("4");
  await using free = await serve(namespace);
  const others = pull(free);
  for (const call of calls.slice(1)) {
    const { payload, deliveryCount, settle } = await others.next();
    expect([Buffer.from(payload).toString(), deliveryCount]).toEqual([call, 1]);
    await settle("accepted");
  }
});

test("a worker that comes to full queues takes at most one of each more than it may hold, and from all of them in turn", async () => {
  const namespace = newNamespace();
  await using peer = await connectAmqpPeer(node().url, namespace);
  {
    await using _queues = await serve(namespace);
  }
  await using operator = await connectOperator(node().url);
  const calls = [1, 2, 3].flatMap(() => tools);
  for (const tool of calls) await peer.publish(invokeTopic(namespace, tool), tool);
  await using session = await serve(namespace);
  const taken = pull(session);
  const topics = new Set<string>();
  for (let settled = 0; settled < 2 * tools.length; settled++) {
    const delivery = await taken.next();
    const held = calls.length - settled - (await waitingCalls(operator, namespace));
    expect(held).toBeLessThanOrEqual(maxUnsettled - 1 + tools.length);
    topics.add(delivery.topic);
    await delivery.settle("accepted");
  }
  expect(topics.size).toBe(tools.length);
});

test("calls of many tools in one moment are at most one of each more than an idle worker may hold", async () => {
  const namespace = newNamespace();
  await using peer = await connectAmqpPeer(node().url, namespace);
  await using operator = await connectOperator(node().url);
  await using session = await serve(namespace);
  const calls = [1, 2, 3].flatMap(() => tools);
  await Promise.all(calls.map((tool) => peer.publish(invokeTopic(namespace, tool), tool)));
  const taken = pull(session);
  const running = [await taken.next(), await taken.next()];
  const held = calls.length - (await waitingCalls(operator, namespace));
  expect(held).toBeLessThanOrEqual(maxUnsettled - 1 + tools.length);
  for (const delivery of running) await delivery.settle("accepted");
  const rest = new Acceptor(session);
  await vi.waitFor(() => expect(rest.texts).toHaveLength(calls.length - running.length), patience);
});

describe("calls that a busy worker has beyond its places", () => {
  const isRepeatable = (): boolean => true;

  /** Waits until a session has taken all calls of a tool that there are. */
  async function whenTaken({ channel }: Operator, namespace: string, tool: string): Promise<void> {
    const queue = `${namespace}/q/sandbox/tool/${tool}`;
    const isTaken = async () => expect((await channel.checkQueue(queue)).messageCount).toBe(0);
    await vi.waitFor(isTaken, patience);
  }

  /** Takes so many deliveries, without settling them. */
  async function hold(session: BrokerSession, count: number): Promise<readonly Delivery[]> {
    const taken = pull(session);
    const held: Delivery[] = [];
    while (held.length < count) held.push(await taken.next());
    return held;
  }

  test("go to a worker that has room, in their second delivery", async () => {
    const namespace = newNamespace();
    await using peer = await connectAmqpPeer(node().url, namespace);
    await using busy = await serve(namespace, { isRepeatable });
    const calls = [1, 2, 3].flatMap((n) => tools.map((tool) => ({ tool, text: `${tool} ${n}` })));
    await Promise.all(
      calls.map(({ tool, text }) => peer.publish(invokeTopic(namespace, tool), text)),
    );
    const running = await hold(busy, maxUnsettled);
    await using free = await serve(namespace, { isRepeatable, maxUnsettled: calls.length });
    const others = await hold(free, calls.length - maxUnsettled);
    expect(running.map(({ redelivered }) => redelivered)).toEqual([false, false]);
    // How many queues send one to the busy worker before it asks for no more is up to the machine; not all did on a slow one.
    const again = others.filter(({ redelivered }) => redelivered);
    expect(again.length).toBeGreaterThan(0);
    expect(new Set(again.map(({ deliveryCount }) => deliveryCount))).toEqual(new Set([2]));
    const texts = [...running, ...others].map(textOf);
    expect(texts.toSorted()).toEqual(calls.map(({ text }) => text).toSorted());
  });

  test("are the newest", async () => {
    const namespace = newNamespace();
    await using peer = await connectAmqpPeer(node().url, namespace);
    await using operator = await connectOperator(node().url);
    // Nobody pulls: all calls wait in the session.
    await using busy = await serve(namespace, { isRepeatable, maxUnsettled: 1 });
    const [oldest, ...newer] = tools;
    await peer.publish(invokeTopic(namespace, oldest!), oldest!);
    await whenTaken(operator, namespace, oldest!);
    await Promise.all(newer.map((tool) => peer.publish(invokeTopic(namespace, tool), tool)));
    await using free = await serve(namespace, { isRepeatable, maxUnsettled: tools.length });
    const others = await hold(free, newer.length);
    expect(others.map(textOf).toSorted()).toEqual(newer.toSorted());
    const [kept] = await hold(busy, 1);
    expect(textOf(kept!)).toBe(oldest);
    expect(kept!.redelivered).toBe(false);
  });

  test("do not come right back, however many consumers there were", async () => {
    const namespace = newNamespace();
    await using peer = await connectAmqpPeer(node().url, namespace);
    await using operator = await connectOperator(node().url);
    const places = 4;
    await using busy = await serve(namespace, { isRepeatable, maxUnsettled: places });
    const [often, ...others] = tools;
    for (let n = 1; n < places; n++) {
      await peer.publish(invokeTopic(namespace, often!), `${n}`);
      await whenTaken(operator, namespace, often!);
    }
    await Promise.all(others.map((tool) => peer.publish(invokeTopic(namespace, tool), tool)));
    // The newest of all, through the last of several consumers.
    await peer.publish(invokeTopic(namespace, often!), often!);
    await using free = await serve(namespace, { isRepeatable, maxUnsettled: tools.length });
    const taken = await hold(free, tools.length - 1);
    const kept = await hold(busy, places);
    expect(kept.map(({ redelivered }) => redelivered)).toEqual(kept.map(() => false));
    expect(new Set(taken.map(textOf)).size).toBe(taken.length);
  });

  test("stay where they are if they must not be repeated", async () => {
    const namespace = newNamespace();
    await using peer = await connectAmqpPeer(node().url, namespace);
    const fragile = tools.slice(0, 4);
    await using busy = await serve(namespace, { isRepeatable: (tool) => !fragile.includes(tool) });
    await Promise.all(tools.map((tool) => peer.publish(invokeTopic(namespace, tool), tool)));
    await using free = await serve(namespace, { isRepeatable, maxUnsettled: tools.length });
    const others = await hold(free, tools.length - fragile.length);
    expect(others.map(textOf).toSorted()).toEqual(tools.slice(4).toSorted());
    const stayed = pull(busy);
    const seen: string[] = [];
    while (seen.length < fragile.length) {
      const delivery = await stayed.next();
      expect(delivery.redelivered).toBe(false);
      seen.push(textOf(delivery));
      await delivery.settle("accepted");
    }
    expect(seen.toSorted()).toEqual(fragile.toSorted());
  });

  test.each([
    ["nobody says that they may be repeated", {}],
    ["a delivery would be missing", { isRepeatable, maxDeliveries: 3 }],
  ])("stay where they are if %s", async (_why, options) => {
    const namespace = newNamespace();
    await using peer = await connectAmqpPeer(node().url, namespace);
    await using operator = await connectOperator(node().url);
    await using busy = await serve(namespace, options);
    await Promise.all(tools.map((tool) => peer.publish(invokeTopic(namespace, tool), tool)));
    await whenNobodyListens(operator, namespace, () => tools.length);
    const taken = pull(busy);
    for (const _ of tools) {
      const delivery = await taken.next();
      expect(delivery.redelivered).toBe(false);
      await delivery.settle("accepted");
    }
  });
});
