/**
 * A thousand calls while workers are killed, connections cut and the broker is restarted.
 */
import { expect, test } from "vitest";
import { newNamespace, toBeTreatedBadly, useRabbitMQ } from "../integration/amqp/node.ts";
import { startAmqpChaosAgent } from "../support/chaos-agent-amqp.ts";
import { brokenPromises, makeChaos } from "../support/chaos.ts";

const node = useRabbitMQ(async () => ({}));

test("on RabbitMQ every call is answered, and none runs twice that must not", async () => {
  const namespace = newNamespace();
  await using agent = startAmqpChaosAgent(node().url, namespace);
  const options = {
    calls: 1_000,
    inFlight: 16,
    workers: 3,
    killEveryMs: 5_000,
    cutEveryMs: 10_000,
  };
  const report = await makeChaos(toBeTreatedBadly(node()), agent, namespace, options);
  expect(brokenPromises(report)).toEqual([]);
  // Or nothing was tried: a tool that must not run twice may also be answered that it was not run again.
  expect(report.calls).toContainEqual(expect.objectContaining({ tool: "once", ending: "success" }));
  expect(report.calls).toHaveLength(options.calls);
  expect(report.kills).toBeGreaterThan(0);
  expect(report.cuts).toBeGreaterThan(0);
}, 900_000);
