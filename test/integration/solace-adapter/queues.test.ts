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
import { keptLog, namespace, never, openPlace, queueOf } from "./place.ts";

describe("the queue of a tool", () => {
  test("is made as operators were told", async () => {
    await using place = await openPlace({ maxDeliveries: 4, username: "str" });
    await using session = await place.broker.connect(["echo"], never);
    expect(place.server.queue(queueOf("echo"))).toMatchObject({
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
    place.server.createQueue(queueOf("echo"), properties, [topic]);
    await using _session = await place.broker.connect(["echo"], never);
    expect(log.told).toEqual([
      {
        event: "queue takes smaller messages than calls may be",
        facts: { queue: queueOf("echo"), maxMessageBytes: 10_000_000, needed: 12_000_000 },
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
    place.server.createQueue(queueOf("echo"), properties, [topic]);
    const provision = vi.fn(() => refusals.permission);
    place.server.faults.provision = provision;
    place.server.faults.subscribe = (_topic, queue) =>
      queue === undefined ? undefined : refusals.permission;
    await using session = await place.broker.connect(["echo"], never);
    expect(provision).not.toHaveBeenCalled();
    expect(log.events).toEqual([
      "queue has another limit of deliveries than configured",
      "broker lets nobody but its administrator subscribe the queue; calls come if it is subscribed",
    ]);
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
      message: expect.stringMatching(
        /no queue test\/place\/q\/sandbox\/tool\/echo.*client profile/,
      ),
    });
    await vi.waitFor(() => expect(place.server.clients).toHaveLength(1), patience);
  });

  test("has a name that is too long for Solace, which is said at once", async () => {
    await using place = await openPlace({ namespace: "n".repeat(110) });
    await expect(place.broker.connect(["t".repeat(100)], never)).rejects.toMatchObject({
      transient: false,
      message: expect.stringMatching(/has 226 bytes; Solace allows 200: choose a shorter name/),
    });
  });

  test("that the broker has no room for may be tried again", async () => {
    await using place = await openPlace();
    place.server.faults.bind = () => refusals.maxClientsForQueue;
    await expect(place.broker.connect(["echo"], never)).rejects.toMatchObject({
      transient: true,
      message: expect.stringMatching(/did not bind to the queue .*tool\/echo: /),
    });
  });

  test("is the worker's own where the operator wants that, with the calls of all its tools", async () => {
    await using place = await openPlace({ queueMode: "worker", workerId: "w-1" });
    const queue = `${namespace}/q/sandbox/w-1`;
    await using session = await place.broker.connect(["a", "b"], never);
    const deliveries = pull(session);
    expect(place.server.queues.filter(({ consumers }) => consumers.length > 0)).toMatchObject([
      { name: queue, subscriptions: [invokeTopic(namespace, "a"), invokeTopic(namespace, "b")] },
    ]);
    await session.leave("a", never);
    expect(place.server.queue(queue)?.subscriptions).toEqual([invokeTopic(namespace, "b")]);
    await place.call("a", "1");
    await place.call("b", "2");
    expect(textOf(await deliveries.next())).toBe("2");
  });
});

describe("the worker's own queue", () => {
  const event = "calls of a tool that is not served come into the queue no more";
  const queue = `${namespace}/q/sandbox/w-1`;

  test.each([
    ["afterwards", [], ["1"]],
    ["meanwhile", ["1"], []],
  ])(
    "gets no more calls of a tool that was taken out of the manifest while the worker was away, once one came %s",
    async (_when, whileAway, afterwards) => {
      const log = keptLog();
      await using place = await openPlace({ queueMode: "worker", workerId: "w-1", log });
      const before = await place.broker.connect(["a", "b"], never);
      await before[Symbol.asyncDispose]();
      for (const text of whileAway) await place.call("a", text);
      await using session = await place.broker.connect(["b"], never);
      const deliveries = pull(session);
      for (const text of afterwards) await place.call("a", text);
      // Whoever pulls it answers that the tool is not there.
      expect(textOf(await deliveries.next())).toBe("1");
      await vi.waitFor(() => expect(log.events).toContain(event), patience);
      expect(place.server.queue(queue)?.subscriptions).toEqual([invokeTopic(namespace, "b")]);
      await place.call("a", "3");
      await place.call("b", "4");
      expect(textOf(await deliveries.next())).toBe("4");
      expect(log.told.filter((told) => told.event === event)).toEqual([
        { event, facts: { queue, tool: "a" } },
      ]);
      // It may come back.
      await session.serve("a", never);
      await place.call("a", "5");
      expect(textOf(await deliveries.next())).toBe("5");
    },
  );

  test("goes on getting them where its administrator alone may change that, which is told once", async () => {
    const log = keptLog();
    await using place = await openPlace({ queueMode: "worker", workerId: "w-1", log });
    place.server.createQueue(queue, { accessType: "non-exclusive", maxRedeliveries: 4 }, [
      invokeTopic(namespace, "a"),
    ]);
    place.server.faults.subscribe = (_topic, queueName) =>
      queueName === undefined ? undefined : refusals.permission;
    await using session = await place.broker.connect(["b"], never);
    const deliveries = pull(session);
    await place.call("a", "1", "2");
    for (const text of ["1", "2"]) expect(textOf(await deliveries.next())).toBe(text);
    const refused = "calls of a tool that is not served go on coming into the queue";
    await vi.waitFor(() => expect(log.events).toContain(refused), patience);
    expect(log.told.filter((told) => told.event === refused)).toMatchObject([
      { facts: { queue, tool: "a" } },
    ]);
  });

  test("keeps what came while its tools were being asked for, whichever came first", async () => {
    const log = keptLog();
    await using place = await openPlace({ queueMode: "worker", workerId: "w-1", log });
    const before = await place.broker.connect(["a", "b"], never);
    await before[Symbol.asyncDispose]();
    await place.call("b", "1");
    place.server.faults.subscribe = (topic) =>
      topic === invokeTopic(namespace, "b") ? refusals.maxSubscriptions : undefined;
    await using session = await place.broker.connect(["a", "b"], never);
    expect(textOf(await pull(session).next())).toBe("1");
    place.server.faults.subscribe = undefined;
    await vi.waitFor(() => expect(log.events).toContain("queue can be used again"), patience);
    expect(place.server.queue(queue)?.subscriptions.toSorted()).toEqual([
      invokeTopic(namespace, "a"),
      invokeTopic(namespace, "b"),
    ]);
    expect(log.events).not.toContain(event);
  });
});

test("the queue of a tool keeps what an administrator has subscribed it to", async () => {
  const log = keptLog();
  await using place = await openPlace({ log });
  const topics = [invokeTopic(namespace, "alias"), invokeTopic(namespace, "echo")];
  const properties = {
    accessType: "non-exclusive",
    maxRedeliveries: 4,
    maxMessageBytes: 30_000_000,
  } as const;
  place.server.createQueue(queueOf("echo"), properties, topics);
  await using session = await place.broker.connect(["echo"], never);
  const deliveries = pull(session);
  await place.call("alias", "1", "2");
  for (const text of ["1", "2"]) expect(textOf(await deliveries.next())).toBe(text);
  expect(place.server.queue(queueOf("echo"))?.subscriptions).toEqual(topics);
  expect(log.events).toEqual([]);
});

describe("a busy worker", () => {
  const numbers = Array.from({ length: 10 }, (_, n) => `${n}`);

  test("keeps one call more at most from others, where the queue has no limit", async () => {
    await using place = await openPlace({ maxUnsettled: 2 });
    await using busy = await place.broker.connect(["echo"], never);
    const deliveries = pull(busy);
    await place.call("echo", "0", "1", "2", "3", "4");
    const held = [await deliveries.next(), await deliveries.next()];
    await vi.waitFor(
      () => expect(place.server.queue(queueOf("echo"))?.unsettled).toBe(3),
      patience,
    );
    await using free = await place.broker.connect(["echo"], never);
    const others = pull(free);
    expect(textOf(await others.next())).toBe("3");
    expect(textOf(await others.next())).toBe("4");
    await held[0]?.settle("accepted");
    expect(textOf(await deliveries.next())).toBe("2");
  });

  test("holds no more than its limit from all its queues together", async () => {
    await using place = await openPlace({ maxUnsettled: 1 });
    await using session = await place.broker.connect(["a", "b"], never);
    const deliveries = pull(session);
    await place.call("a", "1");
    await place.call("b", "1");
    const first = await deliveries.next();
    const more: string[] = [];
    const second = deliveries.next().then((delivery) => more.push(textOf(delivery)));
    await vi.waitFor(() => {
      const unsettled = ["a", "b"].map((tool) => place.server.queue(queueOf(tool))?.unsettled);
      expect(unsettled).toEqual([1, 1]);
    }, patience);
    // What the broker sent before this confirmation has arrived with it.
    await session.publish({ topic: "t", payload: Buffer.from("1") }, never);
    expect(more).toEqual([]);
    await first.settle("accepted");
    await second;
    expect(more).toEqual(["1"]);
  });

  test("takes from each of its queues in turn", async () => {
    await using place = await openPlace({ maxUnsettled: 1 });
    await using session = await place.broker.connect(["a", "b"], never);
    const deliveries = pull(session);
    await place.call("a", ...numbers);
    await place.call("b", ...numbers);
    const tools: string[] = [];
    for (let count = 0; count < numbers.length; count++) {
      const delivery = await deliveries.next();
      tools.push(delivery.topic.slice(-1));
      // What the broker sent before this confirmation has arrived with it: both queues have a call ready.
      await session.publish({ topic: "t", payload: Buffer.from("1") }, never);
      await delivery.settle("accepted");
    }
    expect(tools.filter((tool) => tool === "b").length).toBeGreaterThanOrEqual(4);
  });

  test("that leaves a tool lets its queue go when the last call is settled, and can take it up before", async () => {
    await using place = await openPlace();
    await using session = await place.broker.connect(["echo"], never);
    const deliveries = pull(session);
    const consumers = (): number | undefined =>
      place.server.queue(queueOf("echo"))?.consumers.length;
    await place.call("echo", "1");
    const first = await deliveries.next();
    await session.leave("echo", never);
    expect(consumers()).toBe(1);
    await session.serve("echo", never);
    await place.call("echo", "2");
    const second = await deliveries.next();
    expect(consumers()).toBe(1);
    await session.leave("echo", never);
    await first.settle("accepted");
    await second.settle("failed");
    expect(consumers()).toBe(0);
    expect(place.server.queue(queueOf("echo"))).toMatchObject({
      depth: 1,
      settlements: { accepted: 1, failed: 1, rejected: 0 },
    });
  });
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
    expect(log.events).toContain("message rejected that is neither binary nor text");
    await vi.waitFor(
      () => expect(place.server.queue(queueOf("echo"))?.settlements.rejected).toBe(1),
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
