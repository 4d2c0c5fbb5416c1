/**
 * A thousand calls while workers are ended, connections cut, manifests changed and the broker is restarted.
 *
 * @module-tag full
 */
import { describe, test } from "vitest";
import { newNamespace, useOwnRabbitMQ } from "../integration/amqp/node.ts";
import { muchChaos, muchPoison } from "../support/chaos-options.ts";
import { chaosRabbitMQ } from "../support/chaos-rabbitmq.ts";
import { expectPromisesKept } from "../support/chaos-report.ts";
import { startChaosSmfBroker } from "../support/chaos-smf.ts";
import { makeChaos } from "../support/chaos.ts";

const timeoutMs = 900_000;

const both = [
  ["with more deliveries than a call can need", muchChaos],
  ["with as many as workers have unless told otherwise", muchPoison],
] as const;

describe("every call is answered, and none runs twice that must not, whoever is killed meanwhile", () => {
  describe("on Solace", () => {
    test.each(both)(
      "%s",
      async (_, options) => {
        await using broker = await startChaosSmfBroker();
        expectPromisesKept(await makeChaos(broker, newNamespace(), options));
      },
      timeoutMs,
    );
  });

  describe("on RabbitMQ", () => {
    const node = useOwnRabbitMQ();

    test.each(both)(
      "%s",
      async (_, options) => {
        expectPromisesKept(await makeChaos(chaosRabbitMQ(node()), newNamespace(), options));
      },
      timeoutMs,
    );
  });
});
