/**
 * The agents' side of a broker in this process, for the conformance suite.
 */
import type { MemoryBroker } from "../../fakes/memory-broker/broker.ts";
import type { Peer } from "../broker.ts";

/** What agents can do with `broker`. */
export function memoryPeer(broker: MemoryBroker): Peer {
  return {
    publish(topic, payload, properties) {
      broker.publish(topic, Buffer.from(payload), properties);
      return Promise.resolve();
    },
    listen(pattern) {
      const messages = broker.subscribe(pattern)[Symbol.asyncIterator]();
      return Promise.resolve(async () => {
        const next = await messages.next();
        if (next.done) throw new Error("the subscription ended");
        return { ...next.value, payload: Buffer.from(next.value.payload).toString() };
      });
    },
  };
}
