/**
 * The broker contract, kept by the RabbitMQ adapter against a real RabbitMQ.
 */
import { newNamespace, useRabbitMQ } from "../integration/amqp/node.ts";
import { amqpBroker } from "../support/brokers/rabbitmq-options.ts";
import { openCable } from "../support/brokers/rabbitmq-proxy.ts";
import { connectAmqpPeer } from "./peers/amqp-peer.ts";
import { describeBroker } from "./broker.ts";

const node = useRabbitMQ();

describeBroker("amqp", {
  capabilities: {
    shares: true,
    hasGroups: true,
    durable: true,
    redelivers: true,
    countsDeliveries: true,
    limitsDeliveries: true,
    limitsUnsettled: true,
    tellsUnroutable: true,
    reconnects: false,
  },
  async create({ maxUnsettled = 64, maxDeliveries = 20 } = {}) {
    await using stack = new AsyncDisposableStack();
    const cable = stack.use(await openCable(node().port));
    const place = newNamespace();
    const peer = stack.use(await connectAmqpPeer(node().url, place));
    const owned = stack.move();
    const namespace = `${place}/`;
    const url = `amqp://guest:guest@127.0.0.1:${cable.port}`;
    const common = { url, namespace, maxDeliveries, maxUnsettled };
    return {
      broker: amqpBroker(common),
      namespace,
      peer,
      brokerOf: ({ queues, ...options }) =>
        amqpBroker({
          ...common,
          ...options,
          ...(queues && { queues: new Map(Object.entries(queues)) }),
        }),
      cutConnections: () => cable.cut(),
      [Symbol.asyncDispose]: () => owned.disposeAsync(),
    };
  },
});
