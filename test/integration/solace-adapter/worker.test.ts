/**
 * Whole workers on Solace: `npm test` has the same promises on RabbitMQ.
 *
 * @module-tag full
 */
import { expect, vi } from "vitest";
import { connectSolacePeer } from "../../conformance/peers/solace-peer.ts";
import { startSmfBroker } from "../../../harness/fakes/solace/broker.ts";
import { patience } from "../../support/patience.ts";
import { solaceBroker } from "../../support/brokers/solace-options.ts";
import { Consumption } from "../solace/consumption.ts";
import { describePromises, maxDeliveries } from "../worker/promises.ts";
import { namespace } from "./place.ts";

describePromises("Solace", async () => {
  await using stack = new AsyncDisposableStack();
  const server = stack.use(await startSmfBroker({ rejectsUnmatched: true }));
  const { port, url } = server;
  const peer = stack.use(await connectSolacePeer({ url, isDeadMessageEligible: true }));
  const owned = stack.move();
  return {
    namespace,
    peer,
    port,
    brokerAt: (at) => solaceBroker({ host: `127.0.0.1:${at}`, namespace, maxDeliveries }),
    async takeDeadLetter() {
      const accept = () => "accepted" as const;
      const letters = await Consumption.open(peer.session, "#DEAD_MSG_QUEUE", accept, 1);
      await vi.waitFor(() => expect(letters.bodies).not.toEqual([]), patience);
      return letters.bodies.join();
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
});
