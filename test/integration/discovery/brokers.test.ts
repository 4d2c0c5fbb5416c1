/**
 * The messages of discovery, over every broker.
 */
import { describe, onTestFinished } from "vitest";
import { openDevBroker } from "../../../harness/client/broker-choice.ts";
import { startDevBroker } from "../../../harness/dev-broker/dev-broker.ts";
import { startSmfBroker } from "../../../harness/fakes/solace/broker.ts";
import { createMemoryBroker } from "../../fakes/memory-broker/broker.ts";
import { amqpBroker } from "../../support/brokers/rabbitmq-options.ts";
import { solaceBroker } from "../../support/brokers/solace-options.ts";
import { newNamespace, useRabbitMQ } from "../amqp/node.ts";
import { testDiscovery } from "./golden.ts";

describe("discovery", () => {
  const namespace = "test/discovery";

  testDiscovery("a broker in memory", () =>
    Promise.resolve({ broker: createMemoryBroker({ namespace }), namespace }),
  );

  testDiscovery("a DevBroker", async () => {
    const server = await startDevBroker();
    onTestFinished(() => server[Symbol.asyncDispose]());
    return { broker: await openDevBroker(server, { namespace, name: "test" }), namespace };
  });

  testDiscovery("Solace", async () => {
    const server = await startSmfBroker({ rejectsUnmatched: true });
    onTestFinished(() => server[Symbol.asyncDispose]());
    return { broker: solaceBroker({ host: `127.0.0.1:${server.port}`, namespace }), namespace };
  });
});

describe("discovery", () => {
  const node = useRabbitMQ();

  testDiscovery("RabbitMQ", () => {
    const namespace = newNamespace();
    return Promise.resolve({ broker: amqpBroker({ url: node().url, namespace }), namespace });
  });
});
