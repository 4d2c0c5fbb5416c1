/**
 * A thousand calls while workers are killed, connections cut and the broker is restarted.
 */
import { describe, expect, test } from "vitest";
import { newNamespace, toBeTreatedBadly, useRabbitMQ } from "../integration/amqp/node.ts";
import { ChaosAgent } from "../support/chaos-agent.ts";
import { amqpDial } from "../support/chaos-agent-amqp.ts";
import { solaceDial } from "../support/chaos-agent-solace.ts";
import { muchChaos } from "../support/chaos-options.ts";
import { brokenPromises } from "../support/chaos-report.ts";
import { startChaosSmfBroker } from "../support/chaos-smf.ts";
import { makeChaos } from "../support/chaos.ts";

const timeoutMs = 900_000;

describe("every call is answered, and none runs twice that must not, whoever is killed meanwhile", () => {
  test(
    "on Solace",
    async () => {
      const namespace = newNamespace();
      await using broker = await startChaosSmfBroker(namespace);
      await using agent = new ChaosAgent(namespace, solaceDial(broker.url));
      const report = await makeChaos(broker, agent, namespace, muchChaos);
      expect(brokenPromises(report, muchChaos)).toEqual([]);
    },
    timeoutMs,
  );

  describe("on RabbitMQ", () => {
    const node = useRabbitMQ(async () => ({}));

    test(
      "of a real node",
      async () => {
        const namespace = newNamespace();
        await using agent = new ChaosAgent(namespace, amqpDial(node().url));
        const report = await makeChaos(toBeTreatedBadly(node()), agent, namespace, muchChaos);
        expect(brokenPromises(report, muchChaos)).toEqual([]);
      },
      timeoutMs,
    );
  });
});
