/**
 * A thousand calls while workers are killed, connections cut and the broker is restarted.
 */
import { expect, test } from "vitest";
import { newNamespace, useRabbitMQ } from "../integration/amqp/node.ts";
import { startAmqpChaosAgent } from "../support/chaos-agent-amqp.ts";
import { brokenPromises, makeChaos } from "../support/chaos.ts";

const node = useRabbitMQ(async () => ({}));

test("on RabbitMQ every call is answered, and none runs twice that must not", async () => {
  const namespace = newNamespace();
  const broker = {
    environment: { AMQP_URL: node().url },
    cut: () => node().closeAllConnections(),
    restart: async () => {
      await node().stop();
      await node().start();
    },
  };
  await using agent = startAmqpChaosAgent(node().url, namespace);
  const options = {
    calls: 1_000,
    inFlight: 16,
    workers: 3,
    killEveryMs: 5_000,
    cutEveryMs: 10_000,
  };
  const report = await makeChaos(broker, agent, namespace, options);
  expect(brokenPromises(report)).toEqual([]);
  expect(report.calls).toHaveLength(options.calls);
  expect(report.kills).toBeGreaterThan(0);
  expect(report.cuts).toBeGreaterThan(0);
}, 900_000);
