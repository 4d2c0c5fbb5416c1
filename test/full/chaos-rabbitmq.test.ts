/**
 * A thousand calls on RabbitMQ, while workers are killed, connections cut, manifests changed and
 * the broker is restarted.
 *
 * @module-tag full
 */
import { describe, test } from "vitest";
import { newNamespace, useOwnRabbitMQ } from "../integration/amqp/node.ts";
import { chaosTimeoutMs, muchChaos } from "../support/chaos/options.ts";
import { chaosRabbitMQ } from "../support/chaos/wire/rabbitmq.ts";
import { expectPromisesKept } from "../support/chaos/report.ts";
import { makeChaos } from "../support/chaos/chaos.ts";

describe("a group of workers on RabbitMQ", () => {
  const node = useOwnRabbitMQ();

  test(
    "answers every call, and repeats none that must not be",
    async () => {
      expectPromisesKept(await makeChaos(chaosRabbitMQ(node()), newNamespace(), muchChaos));
    },
    chaosTimeoutMs,
  );
});
