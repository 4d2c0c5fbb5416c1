/**
 * What the tests of the Solace adapter share: a broker of their own, and an agent at it.
 */
import {
  type SmfBroker,
  type SmfBrokerOptions,
  startSmfBroker,
} from "../../../harness/fakes/solace/broker.ts";
import type { Broker } from "../../../worker/broker/broker.ts";
import { defaultGroup, defaultQueue, groupQueue } from "../../../worker/protocol/queue-names.ts";
import { invokeTopic } from "../../../worker/protocol/topics.ts";
import { type Clock, systemClock } from "../../../worker/support/clock.ts";
import { type SolacePeer, connectSolacePeer } from "../../conformance/peers/solace-peer.ts";
import { type SolaceGiven, solaceBroker } from "../../support/brokers/solace-options.ts";

/** A signal that never aborts. */
export const never = new AbortController().signal;

export const namespace = "test/place";

/** The name on the broker of a queue of the group `default`. */
export function addressOf(queue: string): string {
  return groupQueue(namespace, defaultGroup, queue);
}

/** The name on the broker of the default queue. */
export const defaultAddress = addressOf(defaultQueue);

/** A worker with a queue for each of these tools, of the same name. */
export function queueForEach(
  tools: readonly string[],
  limit = 8,
): Pick<SolaceGiven, "queues" | "queueOf"> {
  return { queues: new Map(tools.map((tool) => [tool, limit])), queueOf: (tool) => tool };
}

/** A broker, a worker's adapter for it, and an agent. */
export interface Place extends AsyncDisposable {
  readonly server: SmfBroker;
  readonly broker: Broker;
  readonly peer: SolacePeer;
  /** Publishes calls one after the other. */
  call(toolName: string, ...payloads: readonly string[]): Promise<void>;
}

/** Starts a broker. The caller owns it. */
export async function openPlace(
  given: Partial<SolaceGiven> = {},
  options: SmfBrokerOptions = {},
): Promise<Place> {
  await using stack = new AsyncDisposableStack();
  const server = stack.use(await startSmfBroker(options));
  const peer = stack.use(await connectSolacePeer({ url: server.url }));
  const owned = stack.move();
  return {
    server,
    broker: solaceBroker({ host: `127.0.0.1:${server.port}`, namespace, ...given }),
    peer,
    async call(toolName, ...payloads) {
      for (const payload of payloads) await peer.publish(invokeTopic(namespace, toolName), payload);
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Publishes so many calls "0", "1", … of tools in turn, faster than one after the other. */
export async function callAll(
  place: Place,
  tools: readonly string[],
  count: number,
): Promise<string[]> {
  const bodies = Array.from({ length: count }, (_, n) => `${n}`);
  for (let at = 0; at < count; at += 50) {
    const some = bodies.slice(at, at + 50);
    await Promise.all(some.map((body, n) => place.call(tools[n % tools.length]!, body)));
  }
  return bodies;
}

/** Numbers that look like chance, the same for every run: 0 inclusive to `below` exclusive. */
export function dice(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** Does not sleep longer than a moment. */
export const hurriedClock: Clock = {
  ...systemClock,
  sleep: (ms, signal) => systemClock.sleep(Math.min(ms, 20), signal),
};
