/**
 * A Solace test broker as those see it who break things.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { startSmfBroker } from "../../../../harness/fakes/solace/broker.ts";
import { solaceDial } from "./agent-solace.ts";
import { readSmf } from "./wire-smf.ts";
import type { ChaosBroker } from "../chaos.ts";
import { freePorts } from "../../brokers/rabbitmq-ports.ts";

/**
 * Milliseconds for which a broker that is restarted is away: long enough to be refused a
 * connection.
 */
const outageMs = 1_000;

/** Starts a broker that tells publishers when nobody subscribes. Its owner disposes it. */
export async function startChaosSmfBroker(): Promise<ChaosBroker & AsyncDisposable> {
  // One that the kernel gives to nobody while the broker is away.
  const [port] = await freePorts(1);
  const server = await startSmfBroker({ port: port!, rejectsUnmatched: true });
  return {
    port: server.port,
    dial: solaceDial(server.url),
    read: readSmf,
    environment: (linePort) => ({ SOLACE_HOST: `tcp://127.0.0.1:${linePort}` }),
    cut: async () => server.dropAll(),
    // What it remembers of clients it remembers by their names, of which each connection here has a
    // new one.
    async restart() {
      await server.stop();
      await sleep(outageMs);
      await server.start();
    },
    async waiting(queues) {
      return queues.reduce((sum, queue) => sum + (server.queue(queue)?.depth ?? 0), 0);
    },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}
