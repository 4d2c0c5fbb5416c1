/**
 * What the RabbitMQ adapter and a worker do when the whole node is disturbed, which therefore is
 * theirs alone.
 *
 * @module-tag full
 */
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import { ToolClient } from "../../../harness/client/tool-client.ts";
import { invokeTopic } from "../../../worker/protocol/topics.ts";
import { connectAmqpPeer } from "../../conformance/peers/amqp-peer.ts";
import { pull, textOf } from "../../conformance/broker.ts";
import { patience } from "../../support/patience.ts";
import { amqpBroker } from "../../support/brokers/rabbitmq-options.ts";
import { freePorts } from "../../support/brokers/rabbitmq-ports.ts";
import { ToolRuns, announcingTool } from "../../support/workers/announcing-tool.ts";
import { manifestText } from "../../support/workers/rig.ts";
import { WorkerProcess } from "../../support/workers/worker-process.ts";
import { addUser, lasting, never, newNamespace, surround, useOwnRabbitMQ } from "./node.ts";
import { keptLog } from "../../support/workers/kept-log.ts";
import { awaitedLater } from "../../support/workers/awaited-later.ts";

const node = useOwnRabbitMQ();

describe("a broker that refuses", () => {
  test("a login that it accepted before is tried until it accepts it again", async () => {
    const namespace = newNamespace();
    const url = await addUser(node(), "renamed", [".*", ".*", ".*"]);
    const log = keptLog();
    const broker = lasting(amqpBroker({ url, namespace }), log);
    await using session = await broker.connect(["echo"], never);
    await node().control("change_password", "renamed", "another");
    await node().closeAllConnections();
    const call = { topic: invokeTopic(namespace, "echo"), payload: Buffer.from("1") };
    const publishing = session.publish(call, never);
    await vi.waitFor(
      () =>
        expect(log.factsOf("broker.connect_failed")).toContainEqual(
          expect.objectContaining({
            reason: expect.stringContaining("refused the login"),
          }),
        ),
      patience,
    );
    await node().control("change_password", "renamed", "hush");
    expect(await publishing).toBe("confirmed");
    expect(textOf(await pull(session).next())).toBe("1");
  });
});

describe("a channel that the broker closes", () => {
  test("for a call that was not settled in time is told, and the call goes to others", async () => {
    const namespace = newNamespace();
    const log = keptLog();
    const set = (timeoutMs: number, tickMs: number): Promise<string> =>
      node().control(
        "eval",
        `application:set_env(rabbit, consumer_timeout, ${timeoutMs}),
         application:set_env(rabbit, channel_tick_interval, ${tickMs}).`,
      );
    await using stack = new AsyncDisposableStack();
    stack.defer(async () => void (await set(1_800_000, 60_000)));
    await set(500, 200);
    // Newer servers go by what the queue says, older ones by their configuration.
    const broker = amqpBroker({ url: node().url, namespace, log, consumerTimeoutSeconds: 0.5 });
    await using session = await broker.connect(["slow"], never);
    await using peer = await connectAmqpPeer(node().url, namespace);
    const deliveries = pull(session);
    await peer.publish(invokeTopic(namespace, "slow"), "1");
    const late = await deliveries.next();
    {
      await using other = await broker.connect(["slow"], never);
      const again = await pull(other).next();
      expect(again).toMatchObject({ redelivered: true, deliveryCount: 2 });
      await again.settle("accepted");
    }
    await vi.waitFor(() => expect(log.events).toContain("queue.consume_resumed"), patience);
    expect(log.factsOf("queue.consume_refused")).toMatchObject([
      { reason: expect.stringContaining("AMQP_CONSUMER_TIMEOUT_SECONDS") },
    ]);
    await late.settle("accepted");
    await peer.publish(invokeTopic(namespace, "slow"), "2");
    expect(await deliveries.next()).toMatchObject({ redelivered: false });
  });
});

test("a broker that takes no messages has publishers wait, and says so", async () => {
  const namespace = newNamespace();
  const log = keptLog();
  await using session = await amqpBroker({ url: node().url, namespace, log }).connect([], never);
  const answer = { topic: "a/b", payload: Buffer.from("1") };
  await node().control("set_vm_memory_high_watermark", "0.000001");
  const publishing = Array.from({ length: 5 }, () => session.publish(answer, never));
  await vi.waitFor(() => expect(log.events).toEqual(["broker.blocked"]), patience);
  const waiting = session.publish(answer, never);
  await node().control("set_vm_memory_high_watermark", "0.4");
  expect(new Set(await Promise.all([...publishing, waiting]))).toEqual(new Set(["unroutable"]));
  expect(log.events).toEqual(["broker.blocked", "broker.unblocked"]);
});

test("a broker that takes no messages still learns what became of calls, and hands out others", async () => {
  const namespace = newNamespace();
  const topic = invokeTopic(namespace, "echo");
  const log = keptLog();
  const broker = amqpBroker({ url: node().url, namespace, log, maxUnsettled: 1 });
  await using session = await broker.connect(["echo"], never);
  await using peer = await connectAmqpPeer(node().url, namespace);
  for (const call of ["1", "2"]) await peer.publish(topic, call);
  const deliveries = pull(session);
  const first = await deliveries.next();
  await node().control("set_vm_memory_high_watermark", "0.000001");
  await using stack = new AsyncDisposableStack();
  stack.defer(async () => void (await node().control("set_vm_memory_high_watermark", "0.4")));
  const answer = { topic: `${namespace}/answers`, payload: Buffer.from("1") };
  const publishing = [session.publish(answer, never), session.publish(answer, never)];
  await vi.waitFor(() => expect(log.events).toEqual(["broker.blocked"]), patience);
  await first.settle("accepted");
  const second = await deliveries.next();
  expect(textOf(second)).toBe("2");
  await second.settle("accepted");
  await stack.disposeAsync();
  expect(await Promise.all(publishing)).toEqual(["unroutable", "unroutable"]);
});

test("a worker whose broker takes no messages is not ready until it does, and answers then", async () => {
  const namespace = newNamespace();
  const [port] = await freePorts(1);
  const { MANIFEST_PATH = "", ...around } = await surround(node(), namespace);
  const toolsDir = join(dirname(MANIFEST_PATH), "tools");
  await mkdir(toolsDir);
  await writeFile(join(toolsDir, announcingTool.file), announcingTool.source);
  const tool = { module: "announcing", function: "announces", network: "host" } as const;
  await writeFile(MANIFEST_PATH, manifestText({ tool }));
  const runs = await ToolRuns.listen();
  const environment = { ...around, MANIFEST_PATH, TOOLS_PYTHON_DIR: toolsDir };
  await using worker = new WorkerProcess({ ...environment, HEALTH_PORT: String(port) });
  await worker.says("worker.ready");
  const missing = async (): Promise<unknown> => {
    const answer = await fetch(`http://127.0.0.1:${port}/readyz`);
    return ((await answer.json()) as { missing?: unknown }).missing;
  };
  await using client = await ToolClient.connect({ broker: node().url, namespace });
  const calling = awaitedLater(client.invoke("tool", { port: runs.port }));
  await runs.haveBegun("run");
  await using stack = new AsyncDisposableStack();
  stack.defer(async () => void (await node().control("set_vm_memory_high_watermark", "0.4")));
  await node().control("set_vm_memory_high_watermark", "0.000001");
  // The broker tells whoever publishes, here the answer.
  runs.finish();
  await vi.waitFor(
    async () => expect(await missing()).toEqual(["broker takes no messages"]),
    patience,
  );
  await stack.disposeAsync();
  expect(await calling).toBeDefined();
  await vi.waitFor(async () => expect(await missing()).toBeUndefined(), patience);
});

describe("through the reconnecting decorator", () => {
  test("calls come again when an operator closes all connections", async () => {
    const namespace = newNamespace();
    const topic = invokeTopic(namespace, "echo");
    await using session = await lasting(amqpBroker({ url: node().url, namespace })).connect(
      ["echo"],
      never,
    );
    const deliveries = pull(session);
    {
      await using peer = await connectAmqpPeer(node().url, namespace);
      await peer.publish(topic, "1");
    }
    const former = await deliveries.next();
    await node().closeAllConnections();
    const again = await deliveries.next();
    expect(again).toMatchObject({ redelivered: true, deliveryCount: 2 });
    await former.settle("accepted");
    await again.settle("accepted");
    await using peer = await connectAmqpPeer(node().url, namespace);
    await peer.publish(topic, "2");
    expect(textOf(await deliveries.next())).toBe("2");
  });

  test("nothing is lost when the broker is restarted", { timeout: 180_000 }, async () => {
    const namespace = newNamespace();
    const topic = invokeTopic(namespace, "echo");
    await using session = await lasting(amqpBroker({ url: node().url, namespace })).connect(
      ["echo"],
      never,
    );
    const deliveries = pull(session);
    {
      await using peer = await connectAmqpPeer(node().url, namespace);
      await peer.publish(topic, "running");
      await peer.publish(topic, "waiting");
    }
    const running = await deliveries.next();
    expect(textOf(running)).toBe("running");
    await node().stop();
    await vi.waitFor(() => expect(session.connected).toBe(false), patience);
    const published = session.publish({ topic, payload: Buffer.from("meanwhile") }, never);
    await node().start();
    expect(await published).toBe("confirmed");
    const texts = new Set<string>();
    while (texts.size < 3) {
      const delivery = await deliveries.next();
      await delivery.settle("accepted");
      texts.add(textOf(delivery));
    }
    expect(texts).toEqual(new Set(["running", "waiting", "meanwhile"]));
  });
});
