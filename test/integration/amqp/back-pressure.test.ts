/**
 * How much a worker takes from a queue after a connection or a consumer was lost, whose calls it
 * still runs.
 */
import { expect, test, vi } from "vitest";
import type { Delivery } from "../../../worker/broker/broker.ts";
import { invokeTopic } from "../../../worker/protocol/topics.ts";
import { connectAmqpPeer } from "../../conformance/peers/amqp-peer.ts";
import { pull, textOf } from "../../conformance/broker.ts";
import { patience } from "../../support/patience.ts";
import { amqpBroker } from "../../support/brokers/rabbitmq-options.ts";
import { openCable } from "../../support/brokers/rabbitmq-proxy.ts";
import { connectOperator, lasting, never, newNamespace, useRabbitMQ } from "./node.ts";
import { keptLog } from "../../support/workers/kept-log.ts";

const node = useRabbitMQ();

const limit = 3;

test("the permits of calls that outlive their connection come back one by one, and stay when the queue is made again", async () => {
  const [namespace, log] = [newNamespace(), keptLog()];
  const topic = invokeTopic(namespace, "echo");
  await using cable = await openCable(node().port);
  const url = `amqp://guest:guest@127.0.0.1:${cable.port}`;
  const broker = amqpBroker({ url, namespace, log, maxUnsettled: limit });
  await using busy = await lasting(broker, log).connect(["echo"], never);
  await using peer = await connectAmqpPeer(node().url, namespace);
  await using operator = await connectOperator(node().url);
  const queue = `${namespace}/q/sandbox/default`;
  const waiting = async (): Promise<number> =>
    (await operator.channel.checkQueue(queue)).messageCount;
  const deliveries = pull(busy);
  const hold = async (count: number): Promise<readonly Delivery[]> => {
    const held: Delivery[] = [];
    while (held.length < count) held.push(await deliveries.next());
    return held;
  };
  const isWaiting = (count: number): Promise<void> =>
    vi.waitFor(async () => expect(await waiting()).toBe(count), patience);

  for (const call of ["0", "1", "2"]) await peer.publish(topic, call);
  const running = await hold(limit);
  cable.cut();
  const again = [...(await hold(1))];
  await isWaiting(limit - 1);
  for (const delivery of running) await delivery.settle("accepted");
  again.push(...(await hold(limit - 1)));
  expect(again.map(textOf)).toEqual(["0", "1", "2"]);
  await peer.publish(topic, "3");
  await isWaiting(1);

  for (const delivery of again) await delivery.settle("accepted");
  await (await deliveries.next()).settle("accepted");
  await operator.channel.deleteQueue(queue);
  await vi.waitFor(() => expect(log.events).toContain("queue.consume_resumed"), patience);
  for (const call of ["4", "5", "6", "7"]) await peer.publish(topic, call);
  expect((await hold(limit)).map(textOf)).toEqual(["4", "5", "6"]);
  await isWaiting(1);
});

test("a call that is exempt lets one more come, until it is settled", async () => {
  const namespace = newNamespace();
  const broker = amqpBroker({ url: node().url, namespace, maxUnsettled: 2 });
  await using session = await broker.connect(["echo"], never);
  await using peer = await connectAmqpPeer(node().url, namespace);
  await using operator = await connectOperator(node().url);
  const queue = `${namespace}/q/sandbox/default`;
  const hasCounts = (messageCount: number, consumerCount: number): Promise<void> =>
    vi.waitFor(async () => {
      const counts = { messageCount, consumerCount };
      expect(await operator.channel.checkQueue(queue)).toMatchObject(counts);
    }, patience);
  const deliveries = pull(session);
  const calls = ["0", "1", "2", "3", "4", "5"];
  for (const call of calls) await peer.publish(invokeTopic(namespace, "echo"), call);
  const [first, second] = [await deliveries.next(), await deliveries.next()];
  await hasCounts(4, 1);
  first.exempt?.();
  first.exempt?.();
  const third = await deliveries.next();
  await hasCounts(3, 2);
  await first.settle("accepted");
  first.exempt?.();
  const fourth = await deliveries.next();
  // It came through the consumer that has ended, which the queue counts until then.
  await third.settle("accepted");
  await hasCounts(2, 1);
  await second.settle("accepted");
  const fifth = await deliveries.next();
  await hasCounts(1, 1);
  for (const delivery of [fourth, fifth]) await delivery.settle("accepted");
  const sixth = await deliveries.next();
  await sixth.settle("accepted");
  const all = [first, second, third, fourth, fifth, sixth];
  expect(all.map(textOf)).toEqual(calls);
  expect(all.map(({ redelivered }) => redelivered)).not.toContain(true);
});

test("a worker takes no more than the limit of one queue, however many tools and calls there are", async () => {
  const namespace = newNamespace();
  const tools = Array.from({ length: 10 }, (_, n) => `tool-${n}`);
  const broker = amqpBroker({ url: node().url, namespace, maxUnsettled: limit });
  await using session = await broker.connect(tools, never);
  await using peer = await connectAmqpPeer(node().url, namespace);
  await using operator = await connectOperator(node().url);
  const queue = `${namespace}/q/sandbox/default`;
  const deliveries = pull(session);
  const calls = [1, 2].flatMap(() => tools);
  await Promise.all(calls.map((tool) => peer.publish(invokeTopic(namespace, tool), tool)));
  for (let left = calls.length; left > 0; left--) {
    const delivery = await deliveries.next();
    const { messageCount } = await operator.channel.checkQueue(queue);
    expect(left - messageCount).toBeLessThanOrEqual(limit);
    await delivery.settle("accepted");
  }
});
