/**
 * How much a session is handed before it has settled what it has.
 */
import { beforeEach, describe, expect, test, vi } from "vitest";
import { reconnecting } from "../../../worker/broker/reconnecting.ts";
import { patience } from "../../support/patience.ts";
import { Acceptor, type Suite, never, numbers, publishCalls, pull, textOf } from "./under-test.ts";

/** Runs the promises about deliveries that are not settled. */
export function describeBackPressure({ name, create, capabilities }: Suite): void {
  describe("the limit of unsettled deliveries", () => {
    beforeEach((context) => {
      context.skip(!capabilities.limitsUnsettled, `the ${name} broker has no such limit`);
    });

    test("has room again for each that is settled, however it is", async () => {
      await using under = await create({ maxUnsettled: 2 });
      await using session = await under.broker.connect(["echo"], never);
      const deliveries = pull(session);
      await publishCalls(under, "echo", numbers(5));
      const first = await deliveries.next();
      const second = await deliveries.next();
      const pendingThird = deliveries.next();
      await first.settle("accepted");
      const third = await pendingThird;
      const pendingFourth = deliveries.next();
      await second.settle("rejected");
      const fourth = await pendingFourth;
      const pendingFifth = deliveries.next();
      await third.settle("failed");
      const fifth = await pendingFifth;
      expect([first, second, third, fourth].map(textOf)).toEqual(numbers(4));
      // The failed one may come before what has never been handed out, or after.
      expect(["2", "4"]).toContain(textOf(fifth));
    });

    test(
      "leaves the rest to others while all that a session may hold is unsettled",
      { tags: "promise-B7" },
      async ({ skip }) => {
        skip(!capabilities.shares, "every session gets a copy");
        await using under = await create({ maxUnsettled: 2 });
        await using busy = await under.broker.connect(["echo"], never);
        const deliveries = pull(busy);
        await publishCalls(under, "echo", ["0", "1"]);
        const held = [await deliveries.next(), await deliveries.next()];
        const more: string[] = [];
        const third = deliveries.next().then((delivery) => more.push(textOf(delivery)));
        await using free = await under.broker.connect(["echo"], never);
        const worker = new Acceptor(free);
        await publishCalls(under, "echo", ["2", "3", "4", "5", "6", "7"]);
        await vi.waitFor(() => expect(worker.texts).toHaveLength(6), patience);
        expect(worker.texts).toEqual(["2", "3", "4", "5", "6", "7"]);
        expect(held.map(textOf)).toEqual(["0", "1"]);
        expect(more).toEqual([]);
        await worker.finish();
        await held[0]?.settle("accepted");
        await publishCalls(under, "echo", ["8"]);
        await third;
        expect(more).toEqual(["8"]);
      },
    );

    test("counts what goes on from a connection that was lost, and leaves the rest to others", async ({
      skip,
    }) => {
      skip(!capabilities.shares, "every session gets a copy");
      await using under = await create({ maxUnsettled: 2 });
      const log = { info: () => {}, warn: () => {} };
      const backoff = { baseMs: 1, capMs: 100 };
      const lasting = reconnecting(under.broker, { maxAttempts: 0, backoff, log });
      await using busy = await lasting.connect(["echo"], never);
      const deliveries = pull(busy);
      await publishCalls(under, "echo", ["0", "1"]);
      const running = [await deliveries.next(), await deliveries.next()];
      await under.cutConnections();
      await deliveries.next();
      const more: string[] = [];
      const second = deliveries.next().then((delivery) => more.push(textOf(delivery)));
      await using free = await under.broker.connect(["echo"], never);
      const worker = new Acceptor(free);
      await publishCalls(under, "echo", ["2", "3", "4", "5"]);
      // The library of a broker may have one in hand.
      await vi.waitFor(() => expect(worker.texts.length).toBeGreaterThanOrEqual(4), patience);
      expect(more).toEqual([]);
      await worker.finish();
      await running[0]?.settle("accepted");
      await publishCalls(under, "echo", ["6"]);
      await second;
      expect(more).toHaveLength(1);
    });
  });
}
