/**
 * Tools that call tools of other workers, over the brokers with queues.
 *
 * @module-tag full
 */
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Writable } from "node:stream";
import { describe, expect, onTestFinished, test } from "vitest";
import { Agent } from "../../../harness/agent.ts";
import { startSmfBroker } from "../../../harness/fakes/solace/broker.ts";
import type { Broker } from "../../../worker/broker/broker.ts";
import { reconnecting } from "../../../worker/broker/reconnecting.ts";
import { readConfig } from "../../../worker/config/config.ts";
import { createLogger } from "../../../worker/telemetry/logger.ts";
import { createHost } from "../../../worker/wiring/host.ts";
import { Worker } from "../../../worker/worker.ts";
import { amqpBroker } from "../../support/brokers/rabbitmq-options.ts";
import { solaceBroker } from "../../support/brokers/solace-options.ts";
import { type RigTool, manifestText, reachableDirectory } from "../../support/workers/rig.ts";
import { sharedPreparations } from "../../support/workers/shared-preparations.ts";
import { newNamespace, useRabbitMQ } from "../amqp/node.ts";

const python = `
async def digs(ctx, level, to):
    try:
        below = await ctx.tools.call(to[0], {"level": level + 1, "to": [to[1], to[0]]})
    except Exception as error:
        return {"level": level, "code": error.code, "retryable": error.retryable}
    return dict(below)
`;

/** A broker for the workers of a group, which prefetches as many calls as with one slot. */
type BrokerOf = (group: string) => Broker;
const maxUnsettled = 2;

/** Starts a worker with one slot and one tool, which ends with the test. */
async function startWorker(namespace: string, broker: Broker, name: string, tool: RigTool) {
  const base = await reachableDirectory();
  onTestFinished(() => rm(base, { recursive: true, force: true }));
  await mkdir(join(base, "tools"));
  await writeFile(join(base, "tools", "calls.py"), python);
  await writeFile(join(base, "manifest.yaml"), manifestText({ [name]: tool }));
  const environment = {
    SAM_NAMESPACE: namespace,
    DEV_BROKER_HOST: "not.used",
    WORKER_GROUP: name,
    MANIFEST_PATH: join(base, "manifest.yaml"),
    TOOLS_PYTHON_DIR: join(base, "tools"),
    TOOLS_DESCRIBED_BY: "manifest",
    SANDBOX_WORK_DIR: join(base, "work"),
    SANDBOX_MIN_FREE_DISK_MB: "1",
    SANDBOX_MAX_CONCURRENT: "1",
    SANDBOX_MAX_SUSPENDED: "16",
    WARM_MAX_MEMORY_MB: "0",
    HEALTH_PORT: "0",
  };
  const log = createLogger("debug", new Writable({ write: (_chunk, _encoding, done) => done() }));
  const session = reconnecting(broker, { maxAttempts: 1, backoff: { baseMs: 1, capMs: 1 }, log });
  const host = { ...createHost(log, environment), preparations: sharedPreparations };
  const worker = new Worker(readConfig(environment), host, { broker: session });
  onTestFinished(() => worker[Symbol.asyncDispose]());
  await worker.start(AbortSignal.timeout(30_000));
}

/** Two workers whose tools call each other, and an agent that calls the first one's. */
async function startPair(namespace: string, brokerOf: BrokerOf): Promise<Agent> {
  const digs = { module: "calls", function: "digs", allowed_callers: ["direct", "programmatic"] };
  const tools = {
    ping: { ...digs, gateway: { remote: ["pong", "nowhere"] } },
    pong: { ...digs, gateway: { remote: ["ping"] } },
  };
  for (const [name, tool] of Object.entries(tools))
    await startWorker(namespace, brokerOf(name), name, tool);
  const connecting = { maxAttempts: 1, backoff: { baseMs: 1, capMs: 1 } };
  const log = { info: () => undefined, warn: () => undefined };
  const broker = reconnecting(brokerOf("agent"), { ...connecting, log });
  const who = { namespace, name: "agent", inbox: "agent" };
  const agent = await Agent.on(broker, who, AbortSignal.timeout(30_000));
  onTestFinished(() => agent[Symbol.asyncDispose]());
  return agent;
}

function testPair(
  place: () => Promise<{ readonly namespace: string; readonly brokerOf: BrokerOf }>,
): void {
  test("two workers call each other to the bound of depth", async () => {
    const { namespace, brokerOf } = await place();
    const agent = await startPair(namespace, brokerOf);
    const call = (to: readonly string[]) =>
      agent.call({ tool: "ping", args: { level: 0, to }, timeoutSeconds: 60 });
    // More than their workers prefetch.
    for (const answer of await Promise.all(Array.from({ length: 4 }, () => call(["pong", "ping"]))))
      expect(answer).toMatchObject({ toolResult: { level: 3, code: "LIMIT_REACHED" } });
    // Nobody serves it, and the broker says so.
    expect(await call(["nowhere", "ping"])).toMatchObject({
      toolResult: { level: 0, code: "TOOL_NOT_AVAILABLE", retryable: true },
    });
  });
}

describe("on RabbitMQ", () => {
  const node = useRabbitMQ();
  testPair(() => {
    const namespace = newNamespace();
    const given = { url: node().url, namespace, maxUnsettled };
    const brokerOf: BrokerOf = (group) => amqpBroker({ ...given, group });
    return Promise.resolve({ namespace, brokerOf });
  });
});

describe("on Solace", () => {
  testPair(async () => {
    const server = await startSmfBroker({ rejectsUnmatched: true });
    onTestFinished(() => server[Symbol.asyncDispose]());
    const namespace = "test/remote";
    const given = { host: `127.0.0.1:${server.port}`, namespace, maxUnsettled };
    return { namespace, brokerOf: (group) => solaceBroker({ ...given, group }) };
  });
});
