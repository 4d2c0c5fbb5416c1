/**
 * The broker contract, kept by sessions that reconnect.
 */
import { createMemoryBroker } from "../../worker/broker/memory/broker.ts";
import { reconnecting } from "../../worker/broker/reconnecting.ts";
import { describeBroker } from "./broker.ts";
import { memoryPeer } from "./memory-peer.ts";

describeBroker("reconnecting", {
  capabilities: { shares: true, redelivers: true, reconnects: true },
  create() {
    const namespace = "test/reconnecting";
    const broker = createMemoryBroker({ namespace });
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
