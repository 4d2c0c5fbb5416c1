/**
 * A little chaos on RabbitMQ; test/full has more of it.
 */
import { test } from "vitest";
import { littleChaos } from "../../support/chaos/options.ts";
import { chaosRabbitMQ } from "../../support/chaos/wire/rabbitmq.ts";
import { expectPromisesKept } from "../../support/chaos/report.ts";
import { makeChaos } from "../../support/chaos/chaos.ts";
import { newNamespace, useOwnRabbitMQ } from "./node.ts";

const node = useOwnRabbitMQ();

test(
  "every call is answered, and none runs twice that must not, whoever is killed meanwhile",
  { tags: ["full", "promise-B5"], timeout: 300_000 },
  async () => {
    expectPromisesKept(await makeChaos(chaosRabbitMQ(node()), newNamespace(), littleChaos));
  },
);
