/**
 * What comes again, how it is counted, and what never comes again.
 */
import { beforeEach, describe, expect, test } from "vitest";
import type { BrokerSession, Delivery } from "../../../worker/broker/broker.ts";
import {
  type BrokerUnderTest,
  type Suite,
  never,
  publishCalls,
  pull,
  restOf,
  textOf,
} from "./under-test.ts";

/** Runs the promises about redelivery. */
export function describeRedelivery(suite: Suite): void {
  const { name, create, capabilities } = suite;

  test("says whether it redelivers", async () => {
    await using under = await create();
    await using session = await under.broker.connect([], never);
    expect(session.redelivers).toBe(capabilities.redelivers);
  });

  describe("redelivery", () => {
    beforeEach((context) => {
      context.skip(!capabilities.redelivers, `the ${name} broker redelivers nothing`);
    });
    describeFailed(suite);
    describeUnsettled(suite);
  });

  describe("the limit of deliveries", () => {
    beforeEach((context) => {
      context.skip(!capabilities.limitsDeliveries, `the ${name} broker has no such limit`);
    });

    test("is what each delivery says", async () => {
      await using under = await create({ maxDeliveries: 3 });
      await using session = await under.broker.connect(["echo"], never);
      await publishCalls(under, "echo", ["1"]);
      const delivery = await pull(session).next();
      expect(delivery.maxDeliveries).toBe(3);
      await delivery.settle("accepted");
    });

    test("ends a call that always fails", async () => {
      await using under = await create({ maxDeliveries: 3 });
      await using session = await under.broker.connect(["echo"], never);
      const deliveries = pull(session);
      await publishCalls(under, "echo", ['"poison"']);
      for (let count = 1; count <= 3; count++) {
        const delivery = await deliveries.next();
        expect([textOf(delivery), delivery.redelivered]).toEqual(['"poison"', count > 1]);
        await delivery.settle("failed");
      }
      await expectNothingButNew(under, session, deliveries);
    });

    test("ends a call that no session lives to settle", async ({ skip }) => {
      skip(!capabilities.durable, "a call waits for a session that is there");
      await using under = await create({ maxDeliveries: 2 });
      const former = await under.broker.connect(["echo"], never);
      await former[Symbol.asyncDispose]();
      await publishCalls(under, "echo", ['"poison"']);
      for (let count = 1; count <= 2; count++) {
        await using doomed = await under.broker.connect(["echo"], never);
        const delivery = await pull(doomed).next();
        expect([textOf(delivery), delivery.redelivered]).toEqual(['"poison"', count > 1]);
      }
      await using session = await under.broker.connect(["echo"], never);
      await expectNothingButNew(under, session, pull(session));
    });
  });

  if (!capabilities.limitsDeliveries) {
    test("says that nothing limits its deliveries, where nothing does", async () => {
      await using under = await create();
      await using session = await under.broker.connect(["echo"], never);
      await publishCalls(under, "echo", ["1"]);
      expect((await pull(session).next()).maxDeliveries).toBeUndefined();
    });
  }
}

function describeFailed({ create, capabilities }: Suite): void {
  test("brings a failed call again, and counts", async () => {
    await using under = await create();
    await using session = await under.broker.connect(["echo"], never);
    const deliveries = pull(session);
    await publishCalls(under, "echo", ["1"]);
    const expected = [
      [false, 1],
      [true, 2],
      [true, capabilities.countsDeliveries ? 3 : 2],
    ];
    for (const [redelivered, deliveryCount] of expected) {
      const delivery = await deliveries.next();
      expect(textOf(delivery)).toBe("1");
      expect(delivery).toMatchObject({ redelivered, deliveryCount });
      await delivery.settle("failed");
    }
  });

  test("never brings an accepted call again", async () => {
    await using under = await create();
    await using session = await under.broker.connect(["echo"], never);
    const deliveries = pull(session);
    await publishCalls(under, "echo", ["1"]);
    await (await deliveries.next()).settle("accepted");
    await expectNothingButNew(under, session, deliveries);
  });

  test("never brings a rejected call again, not even to others", async () => {
    await using under = await create();
    await using session = await under.broker.connect(["echo"], never);
    const deliveries = pull(session);
    await publishCalls(under, "echo", ["1"]);
    await (await deliveries.next()).settle("rejected");
    await expectNothingButNew(under, session, deliveries);
    await session[Symbol.asyncDispose]();
    await using other = await under.broker.connect(["echo"], never);
    await expectNothingButNew(under, other, pull(other));
  });

  test("brings what a paused session settles as failed to another", async () => {
    await using under = await create();
    await using former = await under.broker.connect(["echo"], never);
    const deliveries = former.deliveries[Symbol.asyncIterator]();
    await publishCalls(under, "echo", ["1"]);
    const delivery = (await deliveries.next()).value as Delivery;
    await former.pause();
    await delivery.settle("failed");
    await delivery.settle("accepted");
    await using session = await under.broker.connect(["echo"], never);
    const again = await pull(session).next();
    expect([textOf(again), again.redelivered]).toEqual(["1", true]);
    expect(await deliveries.next()).toEqual({ done: true, value: undefined });
  });
}

function describeUnsettled({ create, capabilities }: Suite): void {
  test("brings what a session left unsettled to another, in order", async () => {
    await using under = await create();
    await using former = await under.broker.connect(["echo"], never);
    const deliveries = pull(former);
    await publishCalls(under, "echo", ["1", "2", "3", "4"]);
    await (await deliveries.next()).settle("accepted");
    await deliveries.next();
    await deliveries.next();
    await former[Symbol.asyncDispose]();
    await using session = await under.broker.connect(["echo"], never);
    const after = pull(session);
    for (const text of ["2", "3"]) {
      const delivery = await after.next();
      expect(textOf(delivery)).toBe(text);
      expect(delivery).toMatchObject({ redelivered: true, deliveryCount: 2 });
    }
    // Whether the former session had received this one, which nobody pulled, is its own affair.
    expect(textOf(await after.next())).toBe("4");
  });

  test("brings it to a session that is already there", async ({ skip }) => {
    skip(!capabilities.shares, "every session has had its copy");
    await using under = await create();
    await using former = await under.broker.connect(["echo"], never);
    await publishCalls(under, "echo", ["1"]);
    await pull(former).next();
    await using session = await under.broker.connect(["echo"], never);
    const pending = pull(session).next();
    await former[Symbol.asyncDispose]();
    const again = await pending;
    expect(textOf(again)).toBe("1");
    expect(again).toMatchObject({ redelivered: true, deliveryCount: 2 });
  });

  test("brings it again when the connection broke, and overlooks what is settled too late", async () => {
    await using under = await create();
    await using former = await under.broker.connect(["echo"], never);
    const deliveries = pull(former);
    await publishCalls(under, "echo", ["1"]);
    const lost = await deliveries.next();
    await under.cutConnections();
    await using session = capabilities.reconnects
      ? former
      : await under.broker.connect(["echo"], never);
    const after = capabilities.reconnects ? deliveries : pull(session);
    const again = await after.next();
    expect(textOf(again)).toBe("1");
    expect(again).toMatchObject({ redelivered: true, deliveryCount: 2 });
    await lost.settle("failed");
    await lost.settle("accepted");
    await again.settle("accepted");
    await expectNothingButNew(under, session, after);
  });
}

/**
 * Expects calls of `echo` that are published now, and nothing else, until the session is paused.
 */
async function expectNothingButNew(
  under: BrokerUnderTest,
  session: BrokerSession,
  deliveries: { next(): Promise<Delivery> },
): Promise<void> {
  for (const text of ['"new"', '"newer"']) {
    await publishCalls(under, "echo", [text]);
    const delivery = await deliveries.next();
    expect(textOf(delivery)).toBe(text);
    expect(delivery).toMatchObject({ redelivered: false, deliveryCount: 1 });
    await delivery.settle("accepted");
  }
  await session.pause();
  expect(await restOf(session)).toEqual([]);
}
