/**
 * A Solace test broker as those see it who break things.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type SmfBroker, startSmfBroker } from "../../harness/fakes/solace/broker.ts";
import { abortable } from "../../worker/broker/abortable.ts";
import { responseTopic, topicMatches } from "../../worker/protocol/topics.ts";
import type { ChaosBroker } from "./chaos.ts";
import { freePorts } from "./rabbitmq-ports.ts";

/** Milliseconds for which a broker that is restarted is away: long enough to be refused a connection. */
const outageMs = 1_000;

/** A broker, which its owner disposes. */
export interface ChaosSmfBroker extends ChaosBroker, AsyncDisposable {
  readonly url: string;
  readonly server: SmfBroker;
}

/** Starts a broker that tells publishers when nobody subscribes. */
export async function startChaosSmfBroker(namespace: string): Promise<ChaosSmfBroker> {
  // One that the kernel gives to nobody while the broker is away.
  const [port] = await freePorts(1);
  const server = await startSmfBroker({ port: port!, rejectsUnmatched: true });
  return {
    url: server.url,
    server,
    environment: { SOLACE_HOST: `127.0.0.1:${server.port}` },
    cut: () => server.dropAll(),
    // What it remembers of clients it remembers by their names, of which each connection here has a new one.
    async restart() {
      await server.stop();
      await sleep(outageMs);
      await server.start();
    },
    loseAnswer: (signal) => loseAnswer(server, responseTopic(namespace, "*", "*"), signal),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

/** Loses the next answer, and tells which worker has sent it. */
async function loseAnswer(
  server: SmfBroker,
  answers: string,
  signal: AbortSignal,
): Promise<string> {
  const lost = Promise.withResolvers<string>();
  server.faults.publish = (topic, clientName) => {
    if (!topicMatches(answers, topic)) return undefined;
    server.faults.publish = undefined;
    // str-worker/{worker id}/{connection}
    lost.resolve(clientName.split("/")[1]!);
    return "lost";
  };
  try {
    return await abortable(lost.promise, signal);
  } finally {
    server.faults.publish = undefined;
  }
}
