/**
 * What clients had in hand when all connections break at once.
 */
import { expect, test, vi } from "vitest";
import { startSmfBroker } from "../../../harness/fakes/solace/broker.ts";
import { patience } from "../../support/patience.ts";
import { queue } from "./messages.ts";
import { Peer } from "./peer.ts";
import { transports, urlOver } from "./transports.ts";

test.each(transports)(
  "comes back to the queue over %s, and goes to none of those who are about to be cut",
  async (transport) => {
    await using broker = await startSmfBroker({ webPort: 0 });
    broker.createQueue("q", { accessType: "non-exclusive" });
    const deliveryCounts: number[] = [];
    broker.events.on("delivered", ({ deliveryCount }) => deliveryCounts.push(deliveryCount));
    await using one = await Peer.connect(urlOver(transport, broker));
    await using other = await Peer.connect(urlOver(transport, broker));
    for (const peer of [one, other]) await peer.consume("q", () => undefined);
    for (const body of ["a", "b", "c", "d"]) await one.publish(queue("q"), body);
    await vi.waitFor(() => expect(deliveryCounts).toHaveLength(4), patience);
    broker.dropAll();
    expect(broker.queue("q")).toMatchObject({ consumers: [], depth: 4, unsettled: 0 });
    expect(deliveryCounts).toEqual([1, 1, 1, 1]);
  },
);
