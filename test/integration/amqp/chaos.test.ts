/**
 * A little chaos on RabbitMQ; test/full has more of it.
 */
import { expect, test } from "vitest";
import { startAmqpChaosAgent } from "../../support/chaos-agent-amqp.ts";
import { brokenPromises, makeChaos } from "../../support/chaos.ts";
import { newNamespace, toBeTreatedBadly, useRabbitMQ } from "./node.ts";

const node = useRabbitMQ(async () => ({}));

test("every call is answered, and none runs twice that must not, whoever is killed meanwhile", async () => {
  const namespace = newNamespace();
  await using agent = startAmqpChaosAgent(node().url, namespace);
  const options = { calls: 40, inFlight: 8, workers: 2, killEveryMs: 4_000, cutEveryMs: 5_000 };
  const report = await makeChaos(toBeTreatedBadly(node()), agent, namespace, options);
  expect(brokenPromises(report)).toEqual([]);
  // Or nothing was tried: a tool that must not run twice may also be answered that it was not run again.
  expect(report.calls).toContainEqual(expect.objectContaining({ tool: "once", ending: "success" }));
  expect(report.calls).toHaveLength(options.calls);
  expect(report.kills + report.cuts).toBeGreaterThan(0);
}, 240_000);
