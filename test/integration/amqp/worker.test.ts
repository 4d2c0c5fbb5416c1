/**
 * Whole workers on RabbitMQ.
 */
import { readFile, writeFile } from "node:fs/promises";
import { expect, test, vi } from "vitest";
import { ToolClient } from "../../../harness/client/tool-client.ts";
import { decodeAnswer, encodeRequest } from "../../../harness/messages.ts";
import { cancelTopic, invokeTopic, responseTopic } from "../../../worker/protocol/topics.ts";
import { connectAmqpPeer, keyOf } from "../../conformance/peers/amqp-peer.ts";
import { patience } from "../../support/patience.ts";
import { PeerWorkers } from "../../support/workers/peer-workers.ts";
import { amqpBroker } from "../../support/brokers/rabbitmq-options.ts";
import { startCollector } from "../../support/tracing/collector.ts";
import { manifestText } from "../../support/workers/rig.ts";
import { WorkerProcess } from "../../support/workers/worker-process.ts";
import { type BrokerPlace, describePromises, maxDeliveries } from "../worker/promises.ts";
import {
  type Operator,
  addUser,
  connectOperator,
  never,
  newNamespace,
  surround,
  useRabbitMQ,
} from "./node.ts";

const node = useRabbitMQ();

const longMs = 600_000;

/** A place on the node, and an operator at it. */
async function openPlace(): Promise<BrokerPlace & { readonly operator: Operator }> {
  await using stack = new AsyncDisposableStack();
  const namespace = newNamespace();
  const peer = stack.use(await connectAmqpPeer(node().url, namespace));
  const operator = stack.use(await connectOperator(node().url));
  const deadLetters = `${namespace}/q/dead-letter/sandbox`;
  const owned = stack.move();
  return {
    namespace,
    peer,
    operator,
    port: node().port,
    brokerAt: (port) =>
      amqpBroker({ url: `amqp://guest:guest@127.0.0.1:${port}`, namespace, maxDeliveries }),
    takeDeadLetter: () =>
      vi.waitFor(async () => {
        const letter = await operator.channel.get(deadLetters, { noAck: true });
        if (letter === false) throw new Error("there is no dead letter");
        return letter.content.toString();
      }, patience),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

describePromises("RabbitMQ", openPlace);

test(
  "a call whose expiration passes while no worker is there is a dead letter, and is not run",
  { tags: "full" },
  async () => {
    await using place = await openPlace();
    const workers = await PeerWorkers.prepare(place.namespace, place.peer);
    const broker = place.brokerAt(place.port);
    const former = await broker.connect(["repeatable"], never);
    await former[Symbol.asyncDispose]();
    const { topic, request, replyTo } = workers.callOf("repeatable", "expired");
    const options = { persistent: true, expiration: "100", headers: { replyTo } };
    place.operator.channel.publish(place.namespace, keyOf(topic), Buffer.from(request), options);
    expect(await place.takeDeadLetter()).toContain('"id":"expired"');
    const { worker } = await workers.startWorkerOn(broker, 1);
    await workers.publish("repeatable", "later");
    await workers.runs.haveBegun("later");
    workers.runs.finish("later");
    await workers.answered("later");
    await worker.drain(longMs);
    expect(workers.runs.begun).toEqual(["later"]);
  },
);

test(
  "a call of a user that RabbitMQ has verified is cancelled by that user only",
  { tags: ["full", "promise-B9"] },
  async () => {
    await using place = await openPlace();
    const workers = await PeerWorkers.prepare(place.namespace, place.peer);
    const { worker, said } = await workers.startWorkerOn(place.brokerAt(place.port), 1);
    const args = { ends_at_sigterm: true };
    const { topic, request, replyTo } = workers.callOf("once_only", "call", { args });
    const own = { persistent: true, userId: "guest", headers: { replyTo } };
    const { channel } = place.operator;
    channel.publish(place.namespace, keyOf(topic), Buffer.from(request), own);
    await workers.runs.haveBegun("call");
    await workers.cancel("call", "");
    await vi.waitFor(() => expect(said()).toContain("cancel.ignored"), patience);
    channel.publish(
      place.namespace,
      keyOf(cancelTopic(place.namespace, "call")),
      Buffer.from(""),
      own,
    );
    await workers.answered("call");
    expect(workers.answers.get("call")).toMatchObject([{ code: "CANCELLED" }]);
    expect(await worker.drain(longMs)).toMatchObject({ abandoned: 0 });
  },
);

test("a call whose worker is killed is answered by the next one", { tags: "full" }, async () => {
  const namespace = newNamespace();
  const environment = await surround(node(), namespace);
  await using peer = await connectAmqpPeer(node().url, namespace);
  const heard = await peer.listen(responseTopic(namespace, "agent", ">"));
  {
    await using former = new WorkerProcess({ ...environment, SAM_WORKER_ID: "former" });
    await former.says("worker.ready");
    const request = encodeRequest("call-1", "agent", { tool: "sleeps", args: { seconds: 1 } });
    const replyTo = responseTopic(namespace, "agent", "call-1");
    await peer.publish(invokeTopic(namespace, "sleeps"), Buffer.from(request).toString(), {
      replyTo,
    });
    await former.says("call.received");
  }
  await using _next = new WorkerProcess({ ...environment, SAM_WORKER_ID: "next" });
  const answer = await heard();
  expect(answer.topic).toBe(responseTopic(namespace, "agent", "call-1"));
  expect(decodeAnswer(Buffer.from(answer.payload))).toMatchObject({ kind: "success" });
});

test("a call is traced from its header to that of its answer", { tags: "full" }, async () => {
  await using collector = await startCollector();
  const namespace = newNamespace();
  const environment = await surround(node(), namespace);
  await using peer = await connectAmqpPeer(node().url, namespace);
  const replyTo = responseTopic(namespace, "agent", "call-1");
  const heard = await peer.listen(replyTo);
  const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint };
  await using worker = new WorkerProcess({ ...environment, ...endpoint });
  await worker.says("worker.ready");
  const request = encodeRequest("call-1", "agent", { tool: "sleeps", args: { seconds: 0 } });
  const traceId = "0af7651916cd43dd8448eb211c80319c";
  const headers = { replyTo, traceparent: `00-${traceId}-b7ad6b7169203331-01` };
  await peer.publish(invokeTopic(namespace, "sleeps"), Buffer.from(request).toString(), headers);
  const { properties } = await heard();
  worker.child.kill("SIGTERM");
  await worker.exited;
  const spanOf = (name: string) => collector.spans.find((span) => span.name === name);
  expect(spanOf("process sleeps")).toMatchObject({
    traceId,
    parentSpanId: "b7ad6b7169203331",
    attributes: { "messaging.system": "rabbitmq", "messaging.destination.name": "default" },
  });
  expect(properties).toMatchObject({
    traceparent: `00-${traceId}-${spanOf("publish")?.spanId}-01`,
  });
});

test(
  "the permissions that docs/brokers.md gives are enough for a worker and for an agent",
  { tags: "full" },
  async () => {
    const document = await readFile(new URL("../../../docs/brokers.md", import.meta.url), "utf8");
    const commands = document.matchAll(/^rabbitmqctl (add_vhost|add_user|set_permissions) (.*)$/gm);
    const quoted = /'([^']*)'|(\S+)/g;
    for (const [, command = "", rest = ""] of commands) {
      const words = Array.from(rest.matchAll(quoted), ([, text, word]) => text ?? word ?? "");
      await node().control(command, ...words);
    }
    const urlOf = (user: string): string =>
      node()
        .url.replace(/\/\/.*@/, `//${user}@`)
        .replace(/\/?$/, "/tools");
    const url = urlOf("worker:a%20long%20password");
    const environment = { ...(await surround(node(), "ed_test")), AMQP_URL: url };
    await using worker = new WorkerProcess(environment);
    await worker.says("worker.ready");
    const broker = urlOf("agent:another%20password");
    await using client = await ToolClient.connect({ broker, namespace: "ed_test" });
    expect(await client.invoke("sleeps", { seconds: 0 })).toBeDefined();
  },
);

test(
  "a worker without the permission to declare its queues ends at once and says why",
  { tags: ["full", "promise-B1"] },
  async () => {
    const url = await addUser(node(), "serves-nothing", ["^none$", ".*", ".*"]);
    await using worker = new WorkerProcess({
      ...(await surround(node(), newNamespace())),
      AMQP_URL: url,
    });
    expect(await worker.exited).toMatchObject({ code: 78 });
    expect(worker.output).toContain("ACCESS_REFUSED");
    expect(worker.output).not.toContain("hush");
  },
);

test(
  "a tool that may run longer than the broker waits, or whose queue cannot be consumed, costs a worker nothing else",
  { tags: "full" },
  async () => {
    const namespace = newNamespace();
    const environment = await surround(node(), namespace);
    const sleeps = { module: "misbehaving", function: "sleeps", timeout_seconds: 10 };
    const tools = {
      sleeps,
      taken: { ...sleeps, queue: "taken" },
      long: { ...sleeps, timeout_seconds: 90 },
    };
    await writeFile(environment["MANIFEST_PATH"]!, manifestText(tools));
    await using operator = await connectOperator(node().url);
    await operator.channel.assertQueue(`${namespace}/q/sandbox/default/taken`, { durable: true });
    await using worker = new WorkerProcess({
      ...environment,
      WORKER_QUEUES: "default:2,taken:1",
      AMQP_CONSUMER_TIMEOUT_SECONDS: "180",
    });
    await worker.says("worker.ready");
    await using client = await ToolClient.connect({ broker: node().url, namespace });
    expect(await client.invoke("sleeps", { seconds: 0 })).toBeDefined();
    expect(worker.output).toMatch(/default\/taken".*rabbitmqctl delete_queue/);
    expect(worker.output).toContain("AMQP_CONSUMER_TIMEOUT_SECONDS of every worker alike");
    expect(worker.output).not.toMatch(/"topics":\[[^\]]*long/);
  },
);

test(
  "calls of a tool with a queue of its own are not held up by a full default queue",
  { tags: "full" },
  async () => {
    const namespace = newNamespace();
    const environment = await surround(node(), namespace);
    const sleeps = { module: "misbehaving", function: "sleeps" };
    const tools = { sleeps, light: { ...sleeps, queue: "light" } };
    await writeFile(environment["MANIFEST_PATH"]!, manifestText(tools));
    await using worker = new WorkerProcess({ ...environment, WORKER_QUEUES: "default:1,light:1" });
    await worker.says("worker.ready");
    await using client = await ToolClient.connect({ broker: node().url, namespace });
    const ended: string[] = [];
    const cancel = new AbortController();
    const filling = [1, 2, 3].map(async () => {
      await client.invoke("sleeps", { seconds: 60 }, { signal: cancel.signal });
      ended.push("sleeps");
    });
    const cancelled = Promise.allSettled(filling);
    await worker.says("call.received");
    expect(await client.invoke("light", { seconds: 0 })).toBeDefined();
    expect(ended).toEqual([]);
    cancel.abort();
    await cancelled;
  },
);
