/**
 * The broker contract, kept by the in-process broker.
 */
import { createMemoryBroker } from "../../worker/broker/memory/broker.ts";
import { describeBroker } from "./broker.ts";
import { memoryPeer } from "./memory-peer.ts";

describeBroker("memory", {
  capabilities: { shares: true, redelivers: true, reconnects: false },
  create() {
    const namespace = "test/memory";
    const broker = createMemoryBroker({ namespace });
    return Promise.resolve({
      broker,
      namespace,
      peer: memoryPeer(broker),
      cutConnections: () => broker.dropSessions(),
      [Symbol.asyncDispose]: () => Promise.resolve(broker.dropSessions()),
    });
  },
});
