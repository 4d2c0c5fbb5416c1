/**
 * The broker contract, kept by the RabbitMQ adapter against a real RabbitMQ.
 */
import { afterAll, beforeAll, beforeEach } from "vitest";
import { amqpBroker } from "../support/rabbitmq-options.ts";
import { openCable } from "../support/rabbitmq-proxy.ts";
import {
  type RabbitMQ,
  rabbitmqProblem,
  startRabbitMQ,
  startTimeoutMs,
} from "../support/rabbitmq.ts";
import { connectAmqpPeer } from "./amqp-peer.ts";
import { describeBroker } from "./broker.ts";

const problem = rabbitmqProblem();
let node: RabbitMQ;
let places = 0;

beforeAll(async () => {
  if (problem === undefined) node = await startRabbitMQ();
}, startTimeoutMs);
afterAll(() => node?.[Symbol.asyncDispose]());
beforeEach((context) => context.skip(problem !== undefined, problem));

describeBroker("amqp", {
  capabilities: {
    shares: true,
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
    const cable = stack.use(await openCable(node.port));
    const place = `test/amqp/${++places}`;
    const peer = stack.use(await connectAmqpPeer(node.url, place));
    const owned = stack.move();
    const namespace = `${place}/`;
    return {
      broker: amqpBroker({
        url: `amqp://guest:guest@127.0.0.1:${cable.port}`,
        namespace,
        maxDeliveries,
        maxUnsettled,
      }),
      namespace,
      peer,
      cutConnections: () => cable.cut(),
      [Symbol.asyncDispose]: () => owned.disposeAsync(),
    };
  },
});
