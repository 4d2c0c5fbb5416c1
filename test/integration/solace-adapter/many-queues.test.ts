/**
 * Sessions with the queues of many tools, some of which the broker does not answer for.
 */
import { describe, expect, test, vi } from "vitest";
import { systemClock } from "../../../worker/support/clock.ts";
import { pull, textOf } from "../../conformance/broker/under-test.ts";
import { patience } from "../../support/patience.ts";
import { HandClock } from "../../unit/broker/hand-clock.ts";
import { type Place, keptLog, never, openPlace, queueOf } from "./place.ts";

/** Tools whose queues are bound to. */
function boundTools({ server }: Place, tools: readonly string[]): readonly string[] {
  return tools.filter((tool) => server.queue(queueOf(tool))?.consumers.length === 1);
}

describe("a session with 100 tools", () => {
  const tools = Array.from({ length: 100 }, (_, n) => `tool-${n}`);

  test(
    "makes, binds and subscribes their queues, some at the same time",
    { tags: "full" },
    async () => {
      const log = keptLog();
      await using place = await openPlace({ log });
      await using session = await place.broker.connect(tools, never);
      expect(boundTools(place, tools)).toEqual(tools);
      for (const tool of tools)
        expect(place.server.queue(queueOf(tool))?.subscriptions).toHaveLength(1);
      expect(new Set(log.events)).toEqual(new Set(["queue made"]));
      await place.call("tool-99", "1");
      expect(textOf(await pull(session).next())).toBe("1");
    },
  );

  test("asks for no more than 32 of them at once", async () => {
    await using place = await openPlace();
    const asked = new Set<string>();
    place.server.faults.bind = (queue) => {
      asked.add(queue);
      return "silence";
    };
    const stopping = new AbortController();
    const connecting = place.broker.connect(tools, stopping.signal);
    await vi.waitFor(() => expect(asked.size).toBe(32), patience);
    // What was asked before this confirmation has arrived with it.
    await place.call("tool-0", "1");
    expect(asked.size).toBe(32);
    stopping.abort(new Error("enough"));
    await expect(connecting).rejects.toThrow("enough");
  });
});

test("queues that the broker does not answer for keep no other tool waiting, and are bound when it does", async () => {
  const log = keptLog();
  const clock = new HandClock();
  await using place = await openPlace({ log, clock });
  const silent = ["bad-1", "bad-2", "bad-3"];
  const asked: string[] = [];
  place.server.faults.bind = (queue) => {
    asked.push(queue);
    return silent.some((tool) => queue === queueOf(tool)) ? "silence" : undefined;
  };
  const tools = [...silent, "good"];
  const connecting = place.broker.connect(tools, never);
  await vi.waitFor(() => expect(asked.length).toBeGreaterThanOrEqual(tools.length), patience);
  await vi.waitFor(() => expect(boundTools(place, tools)).toEqual(["good"]), patience);
  await vi.waitFor(() => expect(clock.slept).toContain(3_000), patience);
  clock.advance(3_000);
  await using session = await connecting;
  const deliveries = pull(session);
  await place.call("good", "1");
  expect(textOf(await deliveries.next())).toBe("1");
  const told = log.told.filter(({ event }) => event === "queue cannot be used");
  expect(told.map(({ facts }) => facts)).toMatchObject(silent.map((tool) => ({ tools: [tool] })));
  place.server.faults.bind = undefined;
  clock.advance(1_000);
  await vi.waitFor(() => expect(boundTools(place, tools)).toEqual(tools), patience);
});

test("a bind that is answered when nobody waits for it any more leaves no consumer behind", async () => {
  await using place = await openPlace({ clock: systemClock });
  place.server.createQueue(queueOf("late"), { accessType: "non-exclusive", maxRedeliveries: 4 });
  await using session = await place.broker.connect(["good"], never);
  const answering = Promise.withResolvers<void>();
  place.server.faults.answersBindAfter = () => answering.promise;
  const stopping = new AbortController();
  const serving = session.serve("late", stopping.signal);
  const consumers = (): readonly string[] => place.server.queue(queueOf("late"))!.consumers;
  await vi.waitFor(() => expect(consumers()).toHaveLength(1), patience);
  stopping.abort(new Error("enough"));
  await expect(serving).rejects.toThrow("enough");
  place.server.faults.answersBindAfter = undefined;
  answering.resolve();
  await vi.waitFor(() => expect(consumers()).toHaveLength(0), patience);
  await session.serve("late", never);
  expect(consumers()).toHaveLength(1);
});
