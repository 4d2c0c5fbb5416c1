/**
 * The queues of worker groups.
 */
import { beforeEach, describe, expect, test } from "vitest";
import type { Broker } from "../../../worker/broker/broker.ts";
import {
  type BrokerUnderTest,
  type GroupOptions,
  type Suite,
  never,
  numbers,
  publishCalls,
  pull,
  restOf,
  textOf,
} from "./under-test.ts";

/** Runs the promises about groups and about queues beside the default one. */
export function describeGroups({ name, create, capabilities }: Suite): void {
  describe("a group", () => {
    beforeEach((context) => {
      context.skip(capabilities.hasGroups !== true, `the ${name} broker has no groups`);
    });

    test("of two workers shares one queue, of which each holds no more than it may", async ({
      skip,
    }) => {
      skip(!capabilities.limitsUnsettled, `the ${name} broker has no such limit`);
      await using under = await create();
      const limited = brokerOf(under, { queues: { default: 2 } });
      await using one = await limited.connect(["echo"], never);
      await using other = await limited.connect(["echo"], never);
      await publishCalls(under, "echo", numbers(6));
      const [first, second] = [pull(one), pull(other)];
      const held = [
        await first.next(),
        await second.next(),
        await first.next(),
        await second.next(),
      ];
      await using free = await under.broker.connect(["echo"], never);
      const rest = pull(free);
      const left = [await rest.next(), await rest.next()];
      expect([...held, ...left].map(textOf).toSorted()).toEqual(numbers(6));
      // The two had none of these, which would come again from them.
      expect(left.map(({ redelivered }) => redelivered)).toEqual([false, false]);
    });

    test("gets a copy of each call that another group gets", async () => {
      await using under = await create();
      await using session = await under.broker.connect(["echo"], never);
      await using foreign = await brokerOf(under, { group: "reports" }).connect(["echo"], never);
      await publishCalls(under, "echo", ["1"]);
      for (const member of [session, foreign]) {
        const delivery = await pull(member).next();
        expect([textOf(delivery), delivery.redelivered]).toEqual(["1", false]);
      }
    });
  });

  describe("a further queue of a group", () => {
    beforeEach((context) => {
      context.skip(capabilities.hasGroups !== true, `the ${name} broker has no groups`);
    });

    test("has a limit of its own, and is not held up by a full default queue", async () => {
      await using under = await create();
      const queues = { default: 1, heavy: 2 };
      const broker = brokerOf(under, { queues, queueOf: queueNamedLikeTool });
      await using session = await broker.connect(["light", "heavy"], never);
      const deliveries = pull(session);
      await publishCalls(under, "light", ["1", "2"]);
      const held = [await deliveries.next()];
      await publishCalls(under, "heavy", ["3", "4", "5"]);
      held.push(await deliveries.next(), await deliveries.next());
      expect(held.map(({ queue }) => queue)).toEqual(["default", "heavy", "heavy"]);
      expect(held.map(textOf)).toEqual(["1", "3", "4"]);
      const more = deliveries.next();
      await held[2]?.settle("accepted");
      expect(textOf(await more)).toBe("5");
      await held[0]?.settle("accepted");
      expect(textOf(await deliveries.next())).toBe("2");
    });

    test("gets all calls of a tool from the time that the tool moves to it", async () => {
      await using under = await create();
      let queue = "default";
      const broker = brokerOf(under, { queues: { default: 8, heavy: 8 }, queueOf: () => queue });
      await using session = await broker.connect(["echo"], never);
      const deliveries = pull(session);
      for (const [n, other] of ["heavy", "default", "heavy"].entries()) {
        queue = other;
        await session.serve("echo", never);
        for (const call of [`${n}1`, `${n}2`]) {
          await publishCalls(under, "echo", [call]);
          const delivery = await deliveries.next();
          expect([textOf(delivery), delivery.queue]).toEqual([call, queue]);
          await delivery.settle("accepted");
        }
      }
    });

    test("gets all calls of a tool that had another queue when its worker ran last", async () => {
      await using under = await create();
      const queues = { default: 8, heavy: 8 };
      const former = await brokerOf(under, { queues }).connect(["echo"], never);
      await former[Symbol.asyncDispose]();
      const broker = brokerOf(under, { queues, queueOf: () => "heavy" });
      await using session = await broker.connect(["echo"], never);
      await publishCalls(under, "echo", ["1"]);
      const delivery = await pull(session).next();
      expect([textOf(delivery), delivery.queue]).toEqual(["1", "heavy"]);
      await delivery.settle("accepted");
      await session.pause();
      expect(await restOf(session)).toEqual([]);
    });

    test("hands out what waited in it when its tool moved", async () => {
      await using under = await create();
      {
        const former = brokerOf(under, {
          queues: { default: 1, heavy: 1 },
          queueOf: () => "heavy",
        });
        await using _session = await former.connect(["echo"], never);
      }
      await publishCalls(under, "echo", ["1"]);
      const broker = brokerOf(under, { queues: { default: 1, heavy: 1 } });
      await using session = await broker.connect([], never);
      await session.serve("echo", never);
      const delivery = await pull(session).next();
      expect([textOf(delivery), delivery.queue]).toEqual(["1", "heavy"]);
    });
  });
}

function queueNamedLikeTool(tool: string): string {
  return tool === "heavy" ? "heavy" : "default";
}

function brokerOf(under: BrokerUnderTest, options: GroupOptions): Broker {
  if (under.brokerOf === undefined) throw new Error("the broker under test has no groups");
  return under.brokerOf(options);
}
