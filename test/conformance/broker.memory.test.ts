/**
 * The broker contract, kept by the in-process broker.
 */
import { createMemoryBroker } from "../fakes/memory-broker/broker.ts";
import { describeBroker } from "./broker.ts";
import { memoryPeer } from "./peers/memory-peer.ts";

describeBroker("memory", {
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
  create(options = {}) {
    const namespace = "test/memory";
    const broker = createMemoryBroker({ namespace, ...options });
    return Promise.resolve({
      broker,
      namespace,
      peer: memoryPeer(broker),
      cutConnections: () => broker.dropSessions(),
      [Symbol.asyncDispose]: () => Promise.resolve(broker.dropSessions()),
    });
  },
});
