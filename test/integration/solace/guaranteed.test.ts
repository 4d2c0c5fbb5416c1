/**
 * Guaranteed messages of the real library on their way into the SMF test broker: each is kept once,
 * or refused.
 */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import solace from "solclientjs";
import { describe, expect, test, vi } from "vitest";
import { startSmfBroker } from "../../../harness/fakes/solace/broker.ts";
import { patience } from "../../support/patience.ts";
import { subcodeOf } from "./library.ts";
import { queue, topic } from "./messages.ts";
import { Peer } from "./peer.ts";
import { transports, urlOver } from "./transports.ts";

const events = solace.SessionEventCode;

describe.each(transports)("a guaranteed message over %s", (transport) => {
  test("reaches every queue that attracts its topic, the one that it names, and who listens directly", async () => {
    await using broker = await startSmfBroker({ webPort: 0 });
    broker.createQueue("one", {}, ["a/>"]);
    broker.createQueue("two", {}, ["a/*/c", "b"]);
    broker.createQueue("named");
    await using peer = await Peer.connect(urlOver(transport, broker));
    await peer.subscribe("a/>");
    await peer.publish(topic("a/b/c"), "to both");
    await peer.publish(queue("named"), "to it");
    expect(broker.queues.map(({ name, depth }) => [name, depth])).toEqual([
      ["#DEAD_MSG_QUEUE", 0],
      ["one", 1],
      ["two", 1],
      ["named", 1],
    ]);
    await vi.waitFor(() => expect(peer.heard).toMatchObject([{ body: "to both" }]), patience);
    const taken = await Promise.all(["one", "two", "named"].map((name) => peer.consume(name)));
    await vi.waitFor(
      () =>
        expect(taken.map(({ bodies }) => bodies)).toEqual([["to both"], ["to both"], ["to it"]]),
      patience,
    );
  });

  test(
    "of 5 MB comes out as it went in",
    { tags: transport === "tcp" ? [] : ["full"] },
    async () => {
      await using broker = await startSmfBroker({ webPort: 0 });
      broker.createQueue("q");
      await using peer = await Peer.connect(urlOver(transport, broker));
      const body = randomBytes(5_000_000);
      await peer.publish(queue("q"), body);
      const { taken } = await peer.consume("q");
      await vi.waitFor(() => expect(taken.length).toBe(1), patience);
      expect(body.equals(taken[0]!.message.getBinaryAttachment() as Uint8Array)).toBe(true);
    },
  );

  test("is confirmed and dropped when nobody wants it, or refused where the broker says so", async () => {
    await using polite = await startSmfBroker({ webPort: 0 });
    await using peer = await Peer.connect(urlOver(transport, polite));
    await peer.publish(topic("nowhere"), "x");
    await using strict = await startSmfBroker({ webPort: 0, rejectsUnmatched: true });
    await using other = await Peer.connect(urlOver(transport, strict));
    expect(await subcodeOf(other.publish(topic("nowhere"), "x"))).toBe("NO_SUBSCRIPTION_MATCH");
    await other.subscribe("somewhere");
    await other.publish(topic("somewhere"), "x");
  });

  test("is refused when a queue is full, and taken when there is room again", async () => {
    await using broker = await startSmfBroker({ webPort: 0 });
    broker.createQueue("q", { quotaMb: 1 });
    await using peer = await Peer.connect(urlOver(transport, broker));
    const body = Buffer.alloc(600_000);
    await peer.publish(queue("q"), body);
    expect(await subcodeOf(peer.publish(queue("q"), body))).toBe("SPOOL_OVER_QUOTA");
    await peer.consume("q");
    await vi.waitFor(() => expect(broker.queue("q")?.depth).toBe(0), patience);
    await peer.publish(queue("q"), body);
  });

  test("is refused when it is too large for the queue, or there is no queue", async () => {
    await using broker = await startSmfBroker({ webPort: 0 });
    broker.createQueue("q", { maxMessageBytes: 10_000 });
    await using peer = await Peer.connect(urlOver(transport, broker));
    const large = peer.publish(queue("q"), Buffer.alloc(20_000));
    expect(await subcodeOf(large)).toBe("MESSAGE_TOO_LARGE");
    expect(await subcodeOf(peer.publish(queue("none"), "x"))).toBe("UNKNOWN_QUEUE_NAME");
    await peer.publish(queue("q"), "x");
  });
});

test("a direct message is kept by a queue that attracts its topic", async () => {
  await using broker = await startSmfBroker();
  broker.createQueue("q", {}, ["t"]);
  await using peer = await Peer.connect(broker.url);
  peer.send("t", "kept");
  await vi.waitFor(() => expect(broker.queue("q")?.depth).toBe(1), patience);
  const { taken } = await peer.consume("q");
  await vi.waitFor(() => expect(taken).toMatchObject([{ body: "kept" }]), patience);
  expect(taken[0]!.message.getDeliveryMode()).toBe(solace.MessageDeliveryModeType.NON_PERSISTENT);
});

describe("a publisher", () => {
  test("that gets no confirmation sends again, and the message is kept once", async () => {
    await using broker = await startSmfBroker();
    broker.createQueue("q");
    await using peer = await Peer.connect(broker.url);
    broker.faults.publish = () => {
      delete broker.faults.publish;
      return "unconfirmed";
    };
    await peer.publish(queue("q"), "once");
    expect(broker.queue("q")?.depth).toBe(1);
  });

  test("sends again what was lost, and what it sent after it, in order", async () => {
    await using broker = await startSmfBroker();
    broker.createQueue("q");
    await using peer = await Peer.connect(broker.url);
    broker.faults.publish = () => {
      delete broker.faults.publish;
      return "lost";
    };
    await Promise.all(["1", "2", "3"].map((body) => peer.publish(queue("q"), body)));
    const consumption = await peer.consume("q");
    await vi.waitFor(() => expect(consumption.bodies).toEqual(["1", "2", "3"]), patience);
  });

  test("goes on after an outage where it was, and nothing is lost or kept twice", async () => {
    await using broker = await startSmfBroker();
    broker.createQueue("q");
    await using peer = await Peer.connect(broker.url);
    await peer.publish(queue("q"), "before");
    broker.faults.publish = () => "unconfirmed";
    const meanwhile = peer.publish(queue("q"), "meanwhile");
    await once(broker.events, "published");
    const lost = peer.next(events.RECONNECTING_NOTICE);
    await broker.stop();
    await lost;
    const down = peer.publish(queue("q"), "while down");
    delete broker.faults.publish;
    await broker.start();
    await Promise.all([meanwhile, down]);
    const consumption = await peer.consume("q");
    await vi.waitFor(
      () => expect(consumption.bodies).toEqual(["before", "meanwhile", "while down"]),
      patience,
    );
    expect(peer.told).not.toContain("REPUBLISHING_UNACKED_MESSAGES");
  });

  test("that the broker has forgotten publishes anew what is unconfirmed, twice if need be", async () => {
    await using broker = await startSmfBroker();
    broker.createQueue("q");
    await using peer = await Peer.connect(broker.url);
    broker.faults.publish = () => "unconfirmed";
    const published = peer.publish(queue("q"), "twice");
    await once(broker.events, "published");
    delete broker.faults.publish;
    broker.faults.forgetsPublishers = true;
    broker.dropAll();
    await published;
    expect(peer.told).toContain("REPUBLISHING_UNACKED_MESSAGES");
    expect(broker.queue("q")?.depth).toBe(2);
  });

  test("hears when its window is full and when there is room again", async () => {
    await using broker = await startSmfBroker();
    broker.createQueue("q");
    await using peer = await Peer.connect(broker.url, {
      publisherProperties: new solace.MessagePublisherProperties({
        enabled: true,
        windowSize: 2,
        acknowledgeTimeoutInMsecs: 200,
      }),
    });
    const room = peer.next(events.CAN_ACCEPT_DATA);
    broker.faults.publish = () => "unconfirmed";
    const taken = [peer.publish(queue("q"), "1"), peer.publish(queue("q"), "2")];
    expect(() => void peer.publish(queue("q"), "3")).toThrow(/Window Closed/);
    delete broker.faults.publish;
    await room;
    await Promise.all(taken);
    await peer.publish(queue("q"), "3");
    expect(broker.queue("q")?.depth).toBe(3);
  });
});
