/**
 * A RabbitMQ as those see it who break things.
 */
import { connect } from "amqplib";
import { amqpDial } from "./agent-amqp.ts";
import { readAmqp } from "./wire-amqp.ts";
import type { ChaosBroker } from "../chaos.ts";
import type { OwnRabbitMQ } from "../../brokers/rabbitmq.ts";

/** A node that runs; its owner keeps it. */
export function chaosRabbitMQ(node: OwnRabbitMQ): ChaosBroker {
  return {
    port: node.port,
    dial: amqpDial(node.url),
    read: readAmqp,
    environment: (port) => ({ AMQP_URL: node.url.replace(`:${node.port}`, `:${port}`) }),
    cut: () => node.closeAllConnections(),
    async restart() {
      await node.stop();
      await node.start();
    },
    async waiting(queues) {
      const connection = await connect(node.url);
      try {
        const channel = await connection.createChannel();
        const counts = await Promise.all(queues.map((queue) => channel.checkQueue(queue)));
        return counts.reduce((sum, { messageCount }) => sum + messageCount, 0);
      } finally {
        await connection.close();
      }
    },
  };
}
