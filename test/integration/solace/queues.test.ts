/**
 * Queues of the SMF test broker with consumers of the real library: made, shared, settled, lost and
 * found again.
 */
import { once } from "node:events";
import solace from "solclientjs";
import { describe, expect, test, vi } from "vitest";
import { type SmfBroker, startSmfBroker } from "../../../harness/fakes/solace/broker.ts";
import { refusals } from "../../../harness/fakes/solace/faults.ts";
import { patience } from "../../support/patience.ts";
import type { Outcome } from "./consumption.ts";
import { subcodeOf } from "./library.ts";
import { queue, topic } from "./messages.ts";
import { Peer } from "./peer.ts";
import { transports, urlOver } from "./transports.ts";

const flowEvents = solace.MessageConsumerEventName;
const deadMessages = "#DEAD_MSG_QUEUE";

/** Waits until a queue holds as many messages. */
function depth(broker: SmfBroker, name: string, expected: number): Promise<void> {
  return vi.waitFor(() => expect(broker.queue(name)?.depth).toBe(expected), patience);
}

describe("a client", () => {
  test("makes a queue as it wants it, once, and removes it", async () => {
    await using broker = await startSmfBroker();
    await using peer = await Peer.connect(broker.url, { userName: "owner" });
    await peer.provision("q/1", {
      permissions: solace.QueuePermissions.CONSUME,
      maxMessageRedelivery: 5,
      respectsTTL: true,
      quotaMB: 7,
      maxMessageSize: 10_000,
    });
    expect(broker.queue("q/1")?.properties).toMatchObject({
      accessType: "non-exclusive",
      owner: "owner",
      permission: "consume",
      maxRedeliveries: 5,
      respectsTimeToLive: true,
      quotaMb: 7,
      maxMessageBytes: 10_000,
    });
    await peer.provision("q/1", {}, true);
    expect(await subcodeOf(peer.provision("q/1"))).toBe("ENDPOINT_ALREADY_EXISTS");
    await peer.deprovision("q/1");
    expect(broker.queue("q/1")).toBeUndefined();
    expect(await subcodeOf(peer.deprovision("q/1"))).toBe("UNKNOWN_QUEUE_NAME");
  });

  test("may be refused to make a queue", async () => {
    await using broker = await startSmfBroker();
    await using peer = await Peer.connect(broker.url);
    broker.faults.provision = () => ({ code: 403, text: "Permission Not Allowed" });
    expect(await subcodeOf(peer.provision("q"))).toBe("PERMISSION_NOT_ALLOWED");
    expect(broker.queue("q")).toBeUndefined();
  });

  test("finds out why it cannot consume", async () => {
    await using broker = await startSmfBroker();
    await using peer = await Peer.connect(broker.url);
    expect(await subcodeOf(peer.consume("none"))).toBe("UNKNOWN_QUEUE_NAME");
    broker.createQueue("full", { maxFlows: 1, accessType: "non-exclusive" });
    await peer.consume("full");
    expect(await subcodeOf(peer.consume("full"))).toBe("MAX_CLIENTS_FOR_QUEUE");
    broker.faults.bind = () => ({ code: 503, text: "Queue Shutdown" });
    expect(await subcodeOf(peer.consume("full"))).toBe("QUEUE_SHUTDOWN");
  });

  test("does with another's queue what that one permitted", async () => {
    await using broker = await startSmfBroker();
    await using owner = await Peer.connect(broker.url, { userName: "owner" });
    await using other = await Peer.connect(broker.url, { userName: "other" });
    await owner.provision("closed");
    await owner.provision("open", { permissions: solace.QueuePermissions.CONSUME });
    expect(await subcodeOf(other.consume("closed"))).toBe("PERMISSION_NOT_ALLOWED");
    const consumption = await other.consume("open");
    await expect(consumption.addSubscription("t")).rejects.toThrow();
    expect(await subcodeOf(other.deprovision("open"))).toBe("PERMISSION_NOT_ALLOWED");
    expect(broker.queue("open")?.subscriptions).toEqual([]);
  });

  test("sees whether a queue is shared", async () => {
    await using broker = await startSmfBroker();
    broker.createQueue("exclusive");
    broker.createQueue("shared", { accessType: "non-exclusive" });
    await using peer = await Peer.connect(broker.url);
    const accessTypes = [];
    for (const name of ["exclusive", "shared"]) {
      const { consumer } = await peer.consume(name);
      accessTypes.push((consumer as unknown as { accessType: string }).accessType);
    }
    expect(accessTypes).toEqual([
      solace.QueueAccessType.EXCLUSIVE,
      solace.QueueAccessType.NONEXCLUSIVE,
    ]);
  });

  test("has a queue attract topics, as often as it says so", async () => {
    await using broker = await startSmfBroker();
    await using peer = await Peer.connect(broker.url);
    await peer.provision("q");
    const consumption = await peer.consume("q");
    await consumption.addSubscription("tools/*/request/>");
    await consumption.addSubscription("tools/*/request/>");
    expect(broker.queue("q")?.subscriptions).toEqual(["tools/*/request/>"]);
    await peer.publish(topic("tools/a/request/1"), "wanted");
    await peer.publish(topic("tools/a/response/1"), "unwanted");
    await peer.publish(topic("tools/b/request/2"), "wanted too");
    await vi.waitFor(() => expect(consumption.bodies).toEqual(["wanted", "wanted too"]), patience);
  });
});

describe.each(transports)("settlement over %s", (transport) => {
  test("as accepted ends a message, as failed repeats it and counts, as rejected makes it a dead one", async () => {
    await using broker = await startSmfBroker({ webPort: 0 });
    broker.createQueue("q", { accessType: "non-exclusive" });
    await using peer = await Peer.connect(urlOver(transport, broker));
    const plan: readonly Outcome[] = ["failed", "failed", "accepted", "rejected"];
    const consumption = await peer.consume("q", () => plan[consumption.taken.length - 1]);
    await peer.publish(queue("q"), "1");
    await depth(broker, "q", 0);
    await peer.publish(queue("q"), "2", { isDeadMessageEligible: true });
    await depth(broker, deadMessages, 1);
    expect(
      consumption.taken.map(({ body, deliveryCount, isRedelivered }) => ({
        body,
        deliveryCount,
        isRedelivered,
      })),
    ).toEqual([
      { body: "1", deliveryCount: 1, isRedelivered: false },
      { body: "1", deliveryCount: 2, isRedelivered: true },
      { body: "1", deliveryCount: 3, isRedelivered: true },
      { body: "2", deliveryCount: 1, isRedelivered: false },
    ]);
    expect(broker.queue("q")?.settlements).toEqual({ accepted: 1, failed: 2, rejected: 1 });
  });

  test("as failed once too often puts a message into the dead message queue, where it can be had", async () => {
    await using broker = await startSmfBroker({ webPort: 0 });
    await using peer = await Peer.connect(urlOver(transport, broker));
    await peer.provision("q", { maxMessageRedelivery: 2 });
    const poisoned = await peer.consume("q", () => "failed");
    await peer.publish(queue("q"), "poison", { isDeadMessageEligible: true });
    await depth(broker, deadMessages, 1);
    expect(poisoned.taken.map(({ deliveryCount }) => deliveryCount)).toEqual([1, 2, 3]);
    expect(broker.queue("q")?.depth).toBe(0);
    const undertaker = await peer.consume(deadMessages);
    await vi.waitFor(
      () => expect(undertaker.taken).toMatchObject([{ body: "poison", deliveryCount: 1 }]),
      patience,
    );
  });

  test("opens the way for further messages where the queue limits what is unsettled", async () => {
    await using broker = await startSmfBroker({ webPort: 0 });
    broker.createQueue("q", { accessType: "non-exclusive", maxUnsettledPerFlow: 2 });
    await using peer = await Peer.connect(urlOver(transport, broker));
    const consumption = await peer.consume("q", () => undefined);
    for (const body of ["1", "2", "3"]) await peer.publish(queue("q"), body);
    await vi.waitFor(() => expect(consumption.bodies).toEqual(["1", "2"]), patience);
    expect(broker.queue("q")).toMatchObject({ depth: 3, unsettled: 2 });
    consumption.taken[1]!.message.acknowledge();
    await vi.waitFor(() => expect(consumption.bodies).toEqual(["1", "2", "3"]), patience);
  });
});

describe("consumers", () => {
  test("share a queue, and what a dead one had goes to the other", async () => {
    await using broker = await startSmfBroker();
    broker.createQueue("q", { accessType: "non-exclusive" });
    await using publisher = await Peer.connect(broker.url);
    await using dying = await Peer.connect(broker.url);
    await using living = await Peer.connect(broker.url);
    const [a, b] = [await dying.consume("q", () => undefined), await living.consume("q")];
    for (const body of ["1", "2", "3", "4"]) await publisher.publish(queue("q"), body);
    await vi.waitFor(
      () =>
        expect([a.bodies, b.bodies]).toEqual([
          ["1", "3"],
          ["2", "4"],
        ]),
      patience,
    );
    await dying[Symbol.asyncDispose]();
    await vi.waitFor(() => expect(b.bodies).toEqual(["2", "4", "1", "3"]), patience);
    expect(b.taken.slice(2)).toMatchObject([{ deliveryCount: 2 }, { deliveryCount: 2 }]);
    await depth(broker, "q", 0);
  });

  test("of one session share as well", async () => {
    await using broker = await startSmfBroker();
    broker.createQueue("q", { accessType: "non-exclusive" });
    await using peer = await Peer.connect(broker.url);
    const [a, b] = [await peer.consume("q"), await peer.consume("q")];
    for (const body of ["1", "2", "3", "4"]) await peer.publish(queue("q"), body);
    await depth(broker, "q", 0);
    expect([a.bodies, b.bodies]).toEqual([
      ["1", "3"],
      ["2", "4"],
    ]);
  });

  test("that pause keep one window of messages from the others, and no more", async () => {
    await using broker = await startSmfBroker();
    broker.createQueue("q", { accessType: "non-exclusive" });
    await using peer = await Peer.connect(broker.url);
    await using other = await Peer.connect(broker.url);
    const paused = await peer.consume("q", undefined, 1);
    const working = await other.consume("q");
    paused.consumer.stop();
    for (const body of ["1", "2", "3", "4"]) await other.publish(queue("q"), body);
    await vi.waitFor(() => expect(working.bodies).toEqual(["2", "3", "4"]), patience);
    expect(paused.bodies).toEqual([]);
    await depth(broker, "q", 1);
    paused.consumer.start();
    await vi.waitFor(() => expect(paused.bodies).toEqual(["1"]), patience);
  });

  test("are told why they are unbound, and come back", async () => {
    await using broker = await startSmfBroker();
    broker.createQueue("q", { accessType: "non-exclusive" });
    await using peer = await Peer.connect(broker.url);
    const consumption = await peer.consume("q");
    const down = consumption.next(flowEvents.DOWN_ERROR);
    broker.unbindAll("q");
    expect(await down).toMatchObject({ subcode: solace.ErrorSubcode.QUEUE_SHUTDOWN });
    await consumption.connect();
    await peer.publish(queue("q"), "again");
    await vi.waitFor(() => expect(consumption.bodies).toEqual(["again"]), patience);
    const reconnected = consumption.next(flowEvents.RECONNECTED);
    broker.unbindAll("q", refusals.serviceUnavailable);
    await reconnected;
    await peer.publish(queue("q"), "and again");
    await vi.waitFor(() => expect(consumption.bodies).toEqual(["again", "and again"]), patience);
    const gone = consumption.next(flowEvents.DOWN_ERROR);
    broker.deleteQueue("q");
    expect(await gone).toMatchObject({ subcode: solace.ErrorSubcode.UNKNOWN_QUEUE_NAME });
    expect(peer.told).not.toContain("RECONNECTING_NOTICE");
  });
});

describe.each(transports)("an outage over %s", (transport) => {
  test("leaves messages in the queue, and consumers bound again", async () => {
    await using broker = await startSmfBroker({ webPort: 0 });
    broker.createQueue("q", { accessType: "non-exclusive" });
    await using peer = await Peer.connect(urlOver(transport, broker));
    await peer.publish(queue("q"), "kept");
    const up = peer.next(solace.SessionEventCode.RECONNECTED_NOTICE);
    await broker.stop();
    expect(broker.queue("q")?.depth).toBe(1);
    await broker.start();
    await up;
    const consumption = await peer.consume("q");
    await vi.waitFor(() => expect(consumption.bodies).toEqual(["kept"]), patience);
    const bound = once(broker.events, "bound");
    broker.dropAll();
    await bound;
    await peer.publish(queue("q"), "after");
    await vi.waitFor(() => expect(consumption.bodies).toEqual(["kept", "after"]), patience);
    await depth(broker, "q", 0);
  });

  test("does not show a consumer again what it has in hand, and what it has in hand can be settled", async () => {
    await using broker = await startSmfBroker({ webPort: 0 });
    broker.createQueue("q", { accessType: "non-exclusive" });
    await using peer = await Peer.connect(urlOver(transport, broker));
    const consumption = await peer.consume("q", () => undefined);
    for (const body of ["1", "2"]) await peer.publish(queue("q"), body);
    await vi.waitFor(() => expect(consumption.taken).toHaveLength(2), patience);
    consumption.taken[0]!.message.acknowledge();
    const up = consumption.next(flowEvents.UP);
    broker.dropAll();
    await up;
    consumption.taken[1]!.message.acknowledge();
    await depth(broker, "q", 0);
    await peer.publish(queue("q"), "3");
    await vi.waitFor(() => expect(consumption.bodies).toEqual(["1", "2", "3"]), patience);
  });

  test("shows it again where the broker forgot who had it, and old messages settle nothing", async () => {
    await using broker = await startSmfBroker({ webPort: 0 });
    broker.createQueue("q", { accessType: "non-exclusive" });
    broker.faults.forgetsConsumers = true;
    await using peer = await Peer.connect(urlOver(transport, broker));
    const consumption = await peer.consume("q", () => undefined);
    await peer.publish(queue("q"), "1");
    await vi.waitFor(() => expect(consumption.taken).toHaveLength(1), patience);
    broker.dropAll();
    await vi.waitFor(() => expect(consumption.bodies).toEqual(["1", "1"]), patience);
    consumption.taken[0]!.message.acknowledge();
    // What is settled on a flow is settled in order.
    await peer.publish(queue("q"), "2");
    await vi.waitFor(() => expect(consumption.taken).toHaveLength(3), patience);
    const settled = once(broker.events, "settled");
    consumption.taken[2]!.message.acknowledge();
    await settled;
    expect(broker.queue("q")).toMatchObject({ depth: 1, unsettled: 1 });
    consumption.taken[1]!.message.acknowledge();
    await depth(broker, "q", 0);
  });
});

describe("time to live", () => {
  test("ends messages of a queue that respects it", async () => {
    let nowMs = Date.now();
    await using broker = await startSmfBroker({ now: () => nowMs });
    await using peer = await Peer.connect(broker.url);
    await peer.provision("q", { respectsTTL: true });
    const eligible = { isDeadMessageEligible: true };
    await peer.publish(queue("q"), "short", { ttlMs: 1_000, ...eligible });
    await peer.publish(queue("q"), "long", { ttlMs: 100_000, ...eligible });
    expect(broker.queue("q")?.depth).toBe(2);
    nowMs += 1_000;
    await depth(broker, deadMessages, 1);
    const consumption = await peer.consume("q");
    await vi.waitFor(() => expect(consumption.bodies).toEqual(["long"]), patience);
  });
});
