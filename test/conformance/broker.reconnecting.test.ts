/**
 * The broker contract, kept by sessions that reconnect.
 */
import { createMemoryBroker } from "../fakes/memory-broker/broker.ts";
import { reconnecting } from "../../worker/broker/reconnecting.ts";
import { describeBroker } from "./broker.ts";
import { memoryPeer } from "./peers/memory-peer.ts";

describeBroker("reconnecting", {
  capabilities: {
    shares: true,
    durable: true,
    redelivers: true,
    countsDeliveries: true,
    limitsDeliveries: true,
    limitsUnsettled: true,
    tellsUnroutable: true,
    reconnects: true,
  },
  create(options = {}) {
    const namespace = "test/reconnecting";
    const broker = createMemoryBroker({ namespace, ...options });
    return Promise.resolve({
      broker: reconnecting(broker, {
        maxAttempts: 0,
        backoff: { baseMs: 1, capMs: 10 },
        log: { info: () => {}, warn: () => {} },
      }),
      namespace,
      peer: memoryPeer(broker),
      cutConnections: () => broker.dropSessions(),
      [Symbol.asyncDispose]: () => Promise.resolve(broker.dropSessions()),
    });
  },
});
