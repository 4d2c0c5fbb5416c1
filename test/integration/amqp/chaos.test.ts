/**
 * A little chaos on RabbitMQ, with the number of deliveries that workers have unless told otherwise; test/full has more of it.
 */
import { expect, test } from "vitest";
import { ChaosAgent } from "../../support/chaos-agent.ts";
import { amqpDial } from "../../support/chaos-agent-amqp.ts";
import { littleChaos } from "../../support/chaos-options.ts";
import { brokenPromises } from "../../support/chaos-report.ts";
import { makeChaos } from "../../support/chaos.ts";
import { newNamespace, toBeTreatedBadly, useRabbitMQ } from "./node.ts";

const node = useRabbitMQ(async () => ({}));

test("every call is answered, and none runs twice that must not, whoever is killed meanwhile", async () => {
  const namespace = newNamespace();
  await using agent = new ChaosAgent(namespace, amqpDial(node().url));
  const report = await makeChaos(toBeTreatedBadly(node()), agent, namespace, littleChaos);
  expect(brokenPromises(report, littleChaos)).toEqual([]);
}, 240_000);
