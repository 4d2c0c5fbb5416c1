/**
 * A worker that is stopped at once gives back what it has, and is not handed it again.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test, vi } from "vitest";
import type { Broker, BrokerSession, Delivery } from "../../../../worker/broker/broker.ts";
import { invokeTopic, responseTopic } from "../../../../worker/protocol/topics.ts";
import { encodeRequest } from "../../../../harness/messages.ts";
import { pull } from "../../../conformance/broker.ts";
import { withSessions } from "../../../support/brokers/changed-broker.ts";
import { MemoryWorkers } from "../../../support/workers/memory-workers.ts";
import { patience } from "../../../support/patience.ts";
import { amqpBroker } from "../../../support/brokers/rabbitmq-options.ts";
import { namespace } from "../../../support/workers/rig.ts";
import { never, useRabbitMQ } from "../../amqp/node.ts";

/** Milliseconds that a broker far away takes to be paused. */
const farMs = 50;

/** Deliveries after which a session ends: calls that go in circles would never let a timer come. */
const maxHandedOut = 20;

/** The broker, whose sessions are paused by `pause`, with the topics of what they hand out. */
function pausedBy(
  broker: Broker,
  handedOut: string[],
  pause: (session: BrokerSession) => Promise<void>,
): Broker {
  return withSessions(broker, (session) => ({
    deliveries: noting(session.deliveries, handedOut),
    pause: () => pause(session),
  }));
}

async function* noting(
  deliveries: AsyncIterable<Delivery>,
  handedOut: string[],
): AsyncGenerator<Delivery, void> {
  for await (const delivery of deliveries) {
    handedOut.push(delivery.topic);
    if (handedOut.length > maxHandedOut) return;
    yield delivery;
  }
}

/**
 * A worker with one call that runs and one that waits, the topics that it was handed, and its way
 * to end.
 */
async function busyWorker(pause: (session: BrokerSession) => Promise<void>) {
  const workers = await MemoryWorkers.prepare();
  const handedOut: string[] = [];
  const started = await workers.startWorker(1, pausedBy(workers.broker, handedOut, pause));
  workers.publish("repeatable", "running", "waiting");
  await workers.runs.haveBegun("running");
  await vi.waitFor(() => expect(started.said()).toContain("call.no_free_slot"), patience);
  return { workers, handedOut, worker: started.worker };
}

const both = [invokeTopic(namespace, "repeatable"), invokeTopic(namespace, "repeatable")];

describe("a worker that is stopped at once", () => {
  const slowly = async (session: BrokerSession): Promise<void> => {
    await sleep(farMs);
    await session.pause();
  };

  test(
    "is handed nothing of what it gives back, however long the broker takes to pause",
    { tags: ["full", "promise-B7"] },
    async () => {
      const { workers, handedOut, worker } = await busyWorker(slowly);
      await worker[Symbol.asyncDispose]();
      expect(handedOut).toEqual(both);
      expect(workers.answers.size).toBe(0);
      await workers.startWorker(2);
      await workers.runs.haveBegun("running", "running", "waiting");
      workers.runs.finish("running", "waiting");
      await workers.answered("running", "waiting");
    },
  );

  test("is handed nothing of it in the middle of a drain either", { tags: "full" }, async () => {
    const { handedOut, worker } = await busyWorker(slowly);
    void worker.drain(600_000);
    worker.shutdownNow();
    await worker[Symbol.asyncDispose]();
    expect(handedOut).toEqual(both);
  });

  test(
    "ends, and loses no call, when the broker never says that it was paused",
    { tags: "full" },
    async () => {
      const { workers, worker } = await busyWorker(async (session) => {
        await session.pause();
        await new Promise(() => undefined);
      });
      worker.shutdownNow();
      await worker[Symbol.asyncDispose]();
      await workers.startWorker(2);
      await workers.runs.haveBegun("running", "running", "waiting");
      workers.runs.finish("running", "waiting");
      await workers.answered("running", "waiting");
    },
  );
});

describe("on RabbitMQ, a worker that is stopped at once", () => {
  const node = useRabbitMQ();

  test("costs each call one delivery", { tags: "promise-B7" }, async () => {
    const workers = await MemoryWorkers.prepare();
    const { runs } = workers;
    const broker = amqpBroker({ url: node().url, namespace, maxUnsettled: 2 });
    const { worker, said } = await workers.startWorker(1, broker);
    await using agent = await broker.connect([], never);
    for (const name of ["running", "waiting"]) {
      const call = { tool: "repeatable", args: { port: runs.port, name } };
      const replyTo = responseTopic(namespace, "agent", name);
      const payload = encodeRequest(name, "agent", { ...call, timeoutSeconds: 60 });
      const topic = invokeTopic(namespace, call.tool);
      await agent.publish({ topic, payload, properties: { replyTo } }, never);
    }
    await runs.haveBegun("running");
    await vi.waitFor(() => expect(said()).toContain("call.no_free_slot"), patience);
    await worker[Symbol.asyncDispose]();
    await using next = await broker.connect(["repeatable"], never);
    const deliveries = pull(next);
    const both = [await deliveries.next(), await deliveries.next()];
    expect(both.map(({ deliveryCount }) => deliveryCount)).toEqual([2, 2]);
    for (const delivery of both) await delivery.settle("accepted");
  });
});
