/**
 * Calls that an administrator has Solace replay.
 */
import { expect, test, vi } from "vitest";
import { invokeTopic } from "../../../worker/protocol/topics.ts";
import { pull, textOf } from "../../conformance/broker.ts";
import { patience } from "../../support/patience.ts";
import { namespace, never, openPlace, defaultAddress } from "./place.ts";
import { keptLog } from "../../support/workers/kept-log.ts";

test("replayed calls that were sent before the replay count as delivered before, later ones do not", async () => {
  const log = keptLog();
  await using place = await openPlace({ log }, { keepsReplayLog: true });
  await using session = await place.broker.connect(["echo"], never);
  const deliveries = pull(session);
  const topic = invokeTopic(namespace, "echo");
  const send = (text: string, agoMs: number): Promise<void> =>
    place.peer.publish(topic, text, { timestamp: Date.now() - agoMs });
  await send("before", 1_000);
  const first = await deliveries.next();
  expect(first.redelivered).toBe(false);
  await first.settle("accepted");
  await vi.waitFor(() => expect(place.server.queue(defaultAddress)?.depth).toBe(0), patience);
  place.server.replay(defaultAddress);
  await vi.waitFor(() => expect(log.events).toContain("queue.replayed"), patience);
  await send("after", -1_000);
  for (const [text, redelivered] of [
    ["before", true],
    ["after", false],
  ] as const) {
    const delivery = await deliveries.next();
    expect(textOf(delivery)).toBe(text);
    expect(delivery).toMatchObject({ redelivered, deliveryCount: 1 });
    await delivery.settle("accepted");
  }
});
