/**
 * The broker adapter for RabbitMQ, over AMQP 0-9-1.
 *
 * A session is one connection with a channel to take calls, one to publish, and one for each subscription; what is
 * declared is declared on channels of their own, since the broker closes the channel of whatever it refuses. amqplib could
 * reconnect by itself; it is not asked to, because `reconnecting` does so for every broker alike.
 */
import type { Broker } from "../broker.ts";
import { type SessionOptions, openSession } from "./session.ts";

/** Where the broker is, how its queues are made, and how much to take from them. */
export type AmqpBrokerOptions = Omit<SessionOptions, "wasLetIn">;

/** Makes the adapter. Nothing is opened before `connect`. */
export function createAmqpBroker(options: AmqpBrokerOptions): Broker {
  let wasLetIn = false;
  return {
    kind: "amqp",
    async connect(tools, signal) {
      const session = await openSession({ ...options, wasLetIn }, tools, signal);
      wasLetIn = true;
      return session;
    },
  };
}
