/**
 * Calls that end in any order and any way. The client library ends the process when one of its
 * consumers is told too much of this kind, so these are tests of whether the worker lives.
 */
import solace from "solclientjs";
import { describe, expect, test, vi } from "vitest";
import type { Delivery, Settlement } from "../../../worker/broker/broker.ts";
import { invokeTopic } from "../../../worker/protocol/topics.ts";
import { pull, textOf } from "../../conformance/broker.ts";
import { patience } from "../../support/patience.ts";
import { type Place, callAll, dice, namespace, never, openPlace, defaultAddress } from "./place.ts";
import { keptLog } from "../../support/workers/kept-log.ts";

/**
 * How every call ended, as the broker sees it: those that it gave out again are told by their last
 * end.
 */
function finalOutcomes(place: Place): Record<Settlement, number> {
  const ends = { accepted: 0, failed: 0, rejected: 0 };
  place.server.events.on("settled", ({ outcome }) => ends[outcome]++);
  return ends;
}

describe("calls that end in any order and any way", () => {
  test.each([
    // Through several flows.
    { atOnce: 100 },
    { atOnce: 12 },
    { atOnce: 1 },
  ])("end once each, $atOnce at once", { tags: "full" }, async ({ atOnce }) => {
    const log = keptLog();
    await using place = await openPlace({ maxUnsettled: atOnce, maxDeliveries: 200, log });
    await using session = await place.broker.connect(["a", "b"], never);
    let isLost = false;
    void session.closed.then(({ reason }) => (isLost = reason === "lost"));
    const ends = finalOutcomes(place);
    const roll = dice(atOnce);
    const count = 600;
    const left = new Set(await callAll(place, ["a", "b"], count));
    const held: Delivery[] = [];
    const pulling = (async () => {
      for await (const delivery of session.deliveries) held.push(delivery);
    })();
    await vi.waitFor(() => expect(held).toHaveLength(atOnce), patience);
    const expected = { accepted: 0, rejected: 0 };
    while (left.size > 0) {
      // What the broker sent before this confirmation has arrived with it.
      await session.publish({ topic: "t", payload: Buffer.from("1") }, never);
      for (let some = Math.ceil(held.length / 4); some > 0; some--) {
        const [delivery] = held.splice(roll(held.length), 1);
        const outcome = (["accepted", "accepted", "rejected", "failed"] as const)[roll(4)]!;
        if (outcome !== "failed") {
          expected[outcome]++;
          // Nothing that ended comes again.
          expect(left.delete(textOf(delivery!))).toBe(true);
        }
        await delivery!.settle(outcome);
      }
    }
    await vi.waitFor(() => expect(place.server.queue(defaultAddress)?.depth).toBe(0), patience);
    expect(ends).toMatchObject(expected);
    expect(isLost).toBe(false);
    expect(log.events.filter((event) => event !== "queue.created")).toEqual([]);
    await session.pause();
    await pulling;
  });

  test("make one other call wait at most, while one of them is long and hundreds are refused", async () => {
    await using place = await openPlace({ maxUnsettled: 4 });
    await using session = await place.broker.connect(["echo"], never);
    const deliveries = pull(session);
    await place.call("echo", "long");
    const long = await deliveries.next();
    const left = new Set(await callAll(place, ["echo"], 200));
    const ends = { accepted: 0, rejected: 0 };
    const takeOne = async (): Promise<void> => {
      const delivery = await deliveries.next();
      const outcome = left.size % 2 === 0 ? "rejected" : "accepted";
      expect(left.delete(textOf(delivery))).toBe(true);
      ends[outcome]++;
      await delivery.settle(outcome);
    };
    while (left.size > 1) await takeOne();
    await long.settle("accepted");
    while (left.size > 0) await takeOne();
    const queue = (): unknown => place.server.queue(defaultAddress);
    const settlements = { accepted: ends.accepted + 1, failed: 0, rejected: ends.rejected };
    await vi.waitFor(() => expect(queue()).toMatchObject({ depth: 0, settlements }), patience);
    // The worker closes flows that are used up.
    await vi.waitFor(() => expect(queue()).toHaveProperty("consumers.length", 1), patience);
  });
});

test(
  "200 messages that are neither binary nor text are rejected, between calls, by one session",
  { tags: "full" },
  async () => {
    const log = keptLog();
    await using place = await openPlace({ maxUnsettled: 4, log });
    await using session = await place.broker.connect(["echo"], never);
    let isLost = false;
    void session.closed.then(({ reason }) => (isLost = reason === "lost"));
    const deliveries = pull(session);
    const { SDTField, SDTFieldType, SolclientFactory } = solace;
    for (let n = 0; n < 200; n++) {
      const message = SolclientFactory.createMessage();
      message.setDestination(
        SolclientFactory.createTopicDestination(invokeTopic(namespace, "echo")),
      );
      message.setDeliveryMode(solace.MessageDeliveryModeType.PERSISTENT);
      message.setSdtContainer(SDTField.create(SDTFieldType.MAP, new solace.SDTMapContainer()));
      place.peer.session.send(message);
      await place.call("echo", `${n}`);
      const delivery = await deliveries.next();
      expect(textOf(delivery)).toBe(`${n}`);
      await delivery.settle("accepted");
    }
    await vi.waitFor(
      () =>
        expect(place.server.queue(defaultAddress)).toMatchObject({
          depth: 0,
          settlements: { accepted: 200, failed: 0, rejected: 200 },
        }),
      patience,
    );
    expect(isLost).toBe(false);
    expect(new Set(log.events)).toEqual(new Set(["queue.created", "message.unsupported_type"]));
  },
);
