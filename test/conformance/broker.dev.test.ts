/**
 * The broker contract, kept by the DevBroker adapter against our DevBroker over real sockets.
 */
import { startDevBroker } from "../../harness/dev-broker/dev-broker.ts";
import { createDevBroker } from "../../worker/broker/dev/broker.ts";
import { describeBroker } from "./broker.ts";
import { connectDevPeer } from "./peers/dev-peer.ts";

describeBroker("dev", {
  capabilities: {
    shares: false,
    durable: false,
    redelivers: false,
    countsDeliveries: false,
    limitsDeliveries: false,
    limitsUnsettled: false,
    tellsUnroutable: false,
    reconnects: false,
  },
  async create() {
    await using stack = new AsyncDisposableStack();
    const server = stack.use(await startDevBroker());
    const peer = stack.use(await connectDevPeer(server.port));
    const namespace = "test/dev/";
    const owned = stack.move();
    return {
      broker: createDevBroker({
        host: server.host,
        port: server.port,
        namespace,
        workerId: "worker",
        log: { info: () => {}, warn: () => {} },
      }),
      namespace,
      peer,
      cutConnections: () => server.dropConnections(),
      [Symbol.asyncDispose]: () => owned.disposeAsync(),
    };
  },
});
