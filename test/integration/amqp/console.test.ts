/**
 * The console of a worker on RabbitMQ, whose calls pass no broker.
 */
import { expect, test, vi } from "vitest";
import { ConsoleClient } from "../../support/console/console-client.ts";
import { patience } from "../../support/patience.ts";
import { WorkerProcess } from "../../support/workers/worker-process.ts";
import { freePorts } from "../../support/brokers/rabbitmq-ports.ts";
import { connectOperator, newNamespace, surround, useRabbitMQ } from "./node.ts";

const node = useRabbitMQ();

test("a call of the console passes no queue, and a stop answers it", { tags: "full" }, async () => {
  const namespace = newNamespace();
  const [port] = (await freePorts(1)) as [number];
  const environment = {
    ...(await surround(node(), namespace)),
    ...{ CONSOLE_PORT: String(port), SANDBOX_MAX_CONCURRENT: "1" },
  };
  await using worker = new WorkerProcess(environment);
  await worker.says("console.listening");
  await worker.says("worker.ready");
  const token = decodeURIComponent(/#token=([\w-]+)/.exec(worker.output)?.[1] ?? "");
  const client = await ConsoleClient.open(port, token);
  const quick = await client.call({ tool: "sleeps", arguments: { seconds: 0 } });
  await vi.waitFor(async () => {
    const { call, answer } = await client.detail(quick);
    expect(call).toMatchObject({ outcome: "ok", settlement: "accepted", isOwn: true });
    expect(answer).toMatchObject({ result: { tool_result: { slept: 0 } } });
  }, patience);
  await using operator = await connectOperator(node().url);
  const queue = await operator.channel.checkQueue(`${namespace}/q/sandbox/default`);
  expect(queue.messageCount).toBe(0);

  await client.call({ tool: "sleeps", arguments: { seconds: 2 } });
  const waiting = await client.call({ tool: "sleeps", arguments: { seconds: 0 } });
  await vi.waitFor(async () => {
    expect((await client.detail(waiting)).call.phases.at(-1)?.step).toBe("queue");
  }, patience);
  worker.child.kill("SIGTERM");
  await vi.waitFor(async () => {
    const { call, answer } = await client.detail(waiting);
    expect(call).toMatchObject({ outcome: "requeued" });
    expect(answer).toMatchObject({ error: { code: "TOOL_NOT_AVAILABLE" } });
  }, patience);
  expect(await worker.exited).toMatchObject({ code: 0 });
});
