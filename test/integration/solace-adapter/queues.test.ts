/**
 * What the Solace adapter makes on the broker, and how it lives with what is there.
 */
import solace from "solclientjs";
import { describe, expect, test, vi } from "vitest";
import { refusals } from "../../../harness/fakes/solace/faults.ts";
import { maxMessageBytes } from "../../../worker/protocol/limits.ts";
import { invokeTopic } from "../../../worker/protocol/topics.ts";
import { hear, pull, textOf } from "../../conformance/broker.ts";
import { patience } from "../../support/patience.ts";
import { addressOf, defaultAddress, namespace, never, openPlace, queueForEach } from "./place.ts";
import { keptLog } from "../../support/workers/kept-log.ts";

describe("the queue of a group", () => {
  test("is made as operators were told", async () => {
    await using place = await openPlace({ maxDeliveries: 4, username: "str" });
    await using session = await place.broker.connect(["echo"], never);
    expect(place.server.queue(defaultAddress)).toMatchObject({
      properties: {
        accessType: "non-exclusive",
        owner: "str",
        permission: "modify-topic",
        maxRedeliveries: 3,
        respectsTimeToLive: true,
        quotaMb: 5_000,
        maxMessageBytes: 12_000_000,
      },
      subscriptions: [invokeTopic(namespace, "echo")],
    });
    await place.call("echo", "1");
    expect(await pull(session).next()).toMatchObject({ maxDeliveries: 4 });
  });

  test("holds a call of the largest size that agents publish, with properties", async () => {
    await using place = await openPlace();
    await using session = await place.broker.connect(["echo"], never);
    const call = "x".repeat(maxMessageBytes);
    const properties = { replyTo: `${namespace}/answers/1`, userId: "u".repeat(10_000) };
    await place.peer.publish(invokeTopic(namespace, "echo"), call, properties);
    const delivery = await pull(session).next();
    expect(delivery.payload.byteLength).toBe(maxMessageBytes);
    await delivery.settle("accepted");
  });

  test("that takes smaller messages is told of, with what calls need", async () => {
    const log = keptLog();
    await using place = await openPlace({ log });
    const topic = invokeTopic(namespace, "echo");
    const properties = {
      accessType: "non-exclusive",
      maxRedeliveries: 4,
      maxMessageBytes: 10_000_000,
    } as const;
    place.server.createQueue(defaultAddress, properties, [topic]);
    await using _session = await place.broker.connect(["echo"], never);
    expect(log.lines).toEqual([
      {
        event: "queue.message_size_too_small",
        facts: {
          queue: defaultAddress,
          maxMessageBytes: 10_000_000,
          needed: 12_000_000,
        },
      },
    ]);
  });

  test("is taken as it is when an administrator made it, who lets nobody else make or change one", async () => {
    const log = keptLog();
    await using place = await openPlace({ log });
    const topic = invokeTopic(namespace, "echo");
    const properties = {
      accessType: "non-exclusive",
      maxRedeliveries: 2,
      maxMessageBytes: 30_000_000,
    } as const;
    place.server.createQueue(defaultAddress, properties, [topic]);
    const provision = vi.fn(() => refusals.permission);
    place.server.faults.provision = provision;
    place.server.faults.subscribe = (_topic, queue) =>
      queue === undefined ? undefined : refusals.permission;
    await using session = await place.broker.connect(["echo"], never);
    expect(provision).not.toHaveBeenCalled();
    expect(log.events).toEqual(["queue.delivery_limit_differs", "queue.subscribe_refused"]);
    await place.call("echo", "1");
    const delivery = await pull(session).next();
    expect(textOf(delivery)).toBe("1");
    expect(delivery.maxDeliveries).toBe(3);
  });

  test("that is missing and must not be made is refused with the remedy", async () => {
    await using place = await openPlace();
    place.server.faults.provision = () => refusals.permission;
    await expect(place.broker.connect(["echo"], never)).rejects.toMatchObject({
      name: "BrokerError",
      transient: false,
      message: expect.stringMatching(/no queue test\/place\/q\/sandbox\/default, .*client profile/),
    });
    await vi.waitFor(() => expect(place.server.clients).toHaveLength(1), patience);
  });

  test("has a name that is too long for Solace, which is said at once", async () => {
    await using place = await openPlace({ namespace: "n".repeat(110), group: "g".repeat(100) });
    await expect(place.broker.connect(["echo"], never)).rejects.toMatchObject({
      transient: false,
      message: expect.stringMatching(/has 221 bytes; Solace allows 200: choose a shorter WORKER_/),
    });
  });

  test("that the broker has no room for may be tried again", async () => {
    await using place = await openPlace();
    place.server.faults.bind = () => refusals.maxClientsForQueue;
    await expect(place.broker.connect(["echo"], never)).rejects.toMatchObject({
      transient: true,
      message: expect.stringMatching(/did not bind to the queue .*sandbox\/default: /),
    });
  });

  test("of two queues an administrator alone subscribes is told of, and calls come", async () => {
    const log = keptLog();
    await using place = await openPlace({ log, ...queueForEach(["a", "b"]) });
    const properties = {
      accessType: "non-exclusive",
      maxRedeliveries: 4,
      maxMessageBytes: 30_000_000,
    } as const;
    for (const tool of ["a", "b"])
      place.server.createQueue(addressOf(tool), properties, [invokeTopic(namespace, tool)]);
    place.server.faults.subscribe = (_topic, queue) =>
      queue === undefined ? undefined : refusals.permission;
    await using session = await place.broker.connect(["a", "b"], never);
    const deliveries = pull(session);
    for (const tool of ["a", "b"]) {
      await place.call(tool, tool);
      expect(textOf(await deliveries.next())).toBe(tool);
    }
    await session.serve("a", never);
    const alone = /^queue\.(subscribe|unsubscribe)_refused$/;
    const told = log.lines.filter(({ event }) => alone.test(event));
    expect(told).toHaveLength(log.lines.length);
    // Once for each topic, and once for each queue.
    expect(told).toHaveLength(4);
  });
});

test("the queue of a group keeps what an administrator has subscribed it to", async () => {
  const log = keptLog();
  await using place = await openPlace({ log });
  const topics = [invokeTopic(namespace, "alias"), invokeTopic(namespace, "echo")];
  const properties = {
    accessType: "non-exclusive",
    maxRedeliveries: 4,
    maxMessageBytes: 30_000_000,
  } as const;
  place.server.createQueue(defaultAddress, properties, topics);
  await using session = await place.broker.connect(["echo"], never);
  const deliveries = pull(session);
  await place.call("alias", "1", "2");
  for (const text of ["1", "2"]) expect(textOf(await deliveries.next())).toBe(text);
  expect(place.server.queue(defaultAddress)?.subscriptions).toEqual(topics);
  expect(log.events).toEqual([]);
});

describe("a subscription", () => {
  test("that is refused is told with the remedy, and can be tried again", async () => {
    await using place = await openPlace();
    await using session = await place.broker.connect([], never);
    place.server.faults.subscribe = () => ({ code: 403, text: "Subscription ACL Denied" });
    await expect(session.subscribe("control/>", never)).rejects.toMatchObject({
      name: "BrokerError",
      transient: false,
      message: expect.stringMatching(
        /^The broker did not subscribe to control\/>: Subscription ACL Denied. Let the ACL profile/,
      ),
    });
    place.server.faults.subscribe = undefined;
    await using subscription = await session.subscribe("control/>", never);
    await place.peer.publish("control/cancel", "1");
    expect(textOf(await hear(subscription).next())).toBe("1");
  });

  test.each(["a*/b", "a/>/b", "*a", "a//b"])("to %s is refused", async (pattern) => {
    await using place = await openPlace();
    await using session = await place.broker.connect([], never);
    await expect(session.subscribe(pattern, never)).rejects.toMatchObject({
      name: "BrokerError",
      transient: false,
    });
  });

  test("drops the oldest of what nobody pulls, and counts", async () => {
    await using place = await openPlace();
    await using session = await place.broker.connect([], never);
    await using subscription = await session.subscribe("control/>", never);
    const { SolclientFactory } = solace;
    for (let n = 0; n < 10_003; n++) {
      const message = SolclientFactory.createMessage();
      message.setDestination(SolclientFactory.createTopicDestination("control/cancel"));
      message.setBinaryAttachment(Buffer.from(`${n}`));
      place.peer.session.send(message);
    }
    await vi.waitFor(() => expect(subscription.dropped).toBe(3), patience);
    expect(textOf(await hear(subscription).next())).toBe("3");
  });
});

describe("a message", () => {
  test("of text is taken as well, and other kinds are rejected", async () => {
    const log = keptLog();
    await using place = await openPlace({ log });
    await using session = await place.broker.connect(["echo"], never);
    const { SDTField, SDTFieldType, SolclientFactory } = solace;
    const bodies = [
      SDTField.create(SDTFieldType.MAP, new solace.SDTMapContainer()),
      SDTField.create(SDTFieldType.STRING, '"€ 年"'),
    ];
    for (const body of bodies) {
      const message = SolclientFactory.createMessage();
      const topic = SolclientFactory.createTopicDestination(invokeTopic(namespace, "echo"));
      message.setDestination(topic);
      message.setDeliveryMode(solace.MessageDeliveryModeType.PERSISTENT);
      message.setSdtContainer(body);
      place.peer.session.send(message);
    }
    expect(textOf(await pull(session).next())).toBe('"€ 年"');
    expect(log.events).toContain("message.unsupported_type");
    await vi.waitFor(
      () => expect(place.server.queue(defaultAddress)?.settlements.rejected).toBe(1),
      patience,
    );
  });

  test("is read with the properties of every type that peers give", async () => {
    await using place = await openPlace();
    await using session = await place.broker.connect(["echo"], never);
    const { SDTFieldType, SolclientFactory } = solace;
    const map = new solace.SDTMapContainer();
    map.addField("text", SDTFieldType.STRING, "a\nb");
    map.addField("yes", SDTFieldType.BOOL, true);
    map.addField("half", SDTFieldType.DOUBLETYPE, 0.5);
    map.addField("long", SDTFieldType.INT64, 1_795_200_128_599);
    map.addField("none", SDTFieldType.NULLTYPE, null);
    // The library throws when this is read.
    map.addField("odd", SDTFieldType.INT64, -(2 ** 48));
    map.addField("map", SDTFieldType.MAP, new solace.SDTMapContainer());
    const message = SolclientFactory.createMessage();
    message.setDestination(SolclientFactory.createTopicDestination(invokeTopic(namespace, "echo")));
    message.setDeliveryMode(solace.MessageDeliveryModeType.PERSISTENT);
    message.setUserPropertyMap(map);
    place.peer.session.send(message);
    const delivery = await pull(session).next();
    expect(delivery.properties).toEqual({
      text: "a\nb",
      yes: "true",
      half: "0.5",
      long: "1795200128599",
    });
    expect(delivery.payload).toHaveLength(0);
  });
});
