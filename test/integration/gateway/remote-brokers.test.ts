/**
 * Tools that call tools of other workers, over the brokers with queues.
 *
 * @module-tag full
 */
import { describe, expect, onTestFinished, test } from "vitest";
import { Agent } from "../../../harness/agent.ts";
import { startSmfBroker } from "../../../harness/fakes/solace/broker.ts";
import type { Broker } from "../../../worker/broker/broker.ts";
import { reconnecting } from "../../../worker/broker/reconnecting.ts";
import { amqpBroker } from "../../support/brokers/rabbitmq-options.ts";
import { solaceBroker } from "../../support/brokers/solace-options.ts";
import { digs, startDiggingWorker } from "../../support/gateway/digging-worker.ts";
import { newNamespace, useRabbitMQ } from "../amqp/node.ts";

/** A broker for the workers of a group, which prefetches as many calls as with one slot. */
type BrokerOf = (group: string) => Broker;
const maxUnsettled = 2;

/** Two workers whose tools call each other, and an agent that calls the first one's. */
async function startPair(namespace: string, brokerOf: BrokerOf): Promise<Agent> {
  const tools = {
    ping: { ...digs, gateway: { remote: ["pong", "nowhere"] } },
    pong: { ...digs, gateway: { remote: ["ping"] } },
  };
  for (const [name, tool] of Object.entries(tools))
    await startDiggingWorker(namespace, brokerOf(name), name, tool);
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
