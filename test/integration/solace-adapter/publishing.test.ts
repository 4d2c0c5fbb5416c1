/**
 * What becomes of messages that the Solace adapter publishes, and of those that wait while the
 * broker is away.
 */
import { describe, expect, test, vi } from "vitest";
import { refusals } from "../../../harness/fakes/solace/faults.ts";
import { reconnecting } from "../../../worker/broker/reconnecting.ts";
import { pull, textOf } from "../../conformance/broker.ts";
import { patience } from "../../support/patience.ts";
import { namespace, never, openPlace, defaultAddress } from "./place.ts";

const topic = `${namespace}/answers`;

/** More than the library has on its way at once. */
const manyMessages = 1_000;

describe("publishing", () => {
  test(
    "waits for room when too much is on its way, loses nothing, and keeps the order",
    { tags: "full" },
    async () => {
      await using place = await openPlace();
      place.server.createQueue("answers", {}, [topic]);
      const arrived: string[] = [];
      place.server.events.on("published", ({ outcome }) => arrived.push(outcome));
      await using session = await place.broker.connect([], never);
      const heard = await place.peer.listen(topic);
      const payloads = Array.from({ length: manyMessages }, (_, n) => Buffer.from(`${n}`));
      const outcomes = payloads.map((payload) => session.publish({ topic, payload }, never));
      expect(new Set(await Promise.all(outcomes))).toEqual(new Set(["confirmed"]));
      expect(arrived).toHaveLength(manyMessages);
      for (let n = 0; n < manyMessages; n++) expect((await heard()).payload).toBe(`${n}`);
    },
  );

  test("goes on with what waited when the broker confirms again, without what was called off", async () => {
    await using place = await openPlace();
    const heard = await place.peer.listen(topic);
    place.server.faults.publish = () => "lost";
    await using session = await place.broker.connect([], never);
    const signals = new AbortController();
    const publish = (text: string, signal: AbortSignal): Promise<unknown> =>
      session.publish({ topic, payload: Buffer.from(text) }, signal);
    const outcomes = Array.from({ length: 300 }, (_, n) => publish(`${n}`, never));
    const calledOff = publish('"called off"', signals.signal);
    const last = publish('"last"', never);
    signals.abort(new Error("too late"));
    await expect(calledOff).rejects.toThrow("too late");
    // The library sends again what was lost.
    place.server.faults.publish = undefined;
    await Promise.all([...outcomes, last]);
    for (let n = 0; n < 300; n++) expect((await heard()).payload).toBe(`${n}`);
    expect((await heard()).payload).toBe('"last"');
  });

  test("refuses what is more than may wait, and gives up what waits with the session", async () => {
    await using place = await openPlace();
    place.server.faults.publish = () => "lost";
    const session = await place.broker.connect([], never);
    const payload = Buffer.from("1");
    const publish = (): Promise<unknown> => session.publish({ topic, payload }, never);
    const held = Promise.allSettled(Array.from({ length: 2_000 }, publish));
    await expect(publish()).rejects.toMatchObject({
      transient: true,
      message: expect.stringContaining("2000 messages have no confirmation yet"),
    });
    await session[Symbol.asyncDispose]();
    const ended = { status: "rejected", reason: { message: "The broker session has ended" } };
    for (const outcome of await held) expect(outcome).toMatchObject(ended);
  });

  test.each([
    [refusals.spoolOverQuota, true, /did not take a message to .*Spool Over Quota/],
    [{ code: 403, text: "Publish ACL Denied" }, false, /Let the ACL profile/],
    [{ code: 400, text: "Document Is Too Large" }, false, /Raise the limit/],
  ])("tells that the broker refused a message: %j", async (refusal, transient, message) => {
    await using place = await openPlace();
    await using session = await place.broker.connect([], never);
    place.server.faults.publish = () => refusal;
    const refused = session.publish({ topic, payload: Buffer.from("1") }, never);
    await expect(refused).rejects.toMatchObject({
      name: "BrokerError",
      transient,
      message: expect.stringMatching(message),
    });
    place.server.faults.publish = undefined;
    expect(await session.publish({ topic, payload: Buffer.from("2") }, never)).toBe("confirmed");
  });

  test.each(["a//b", "a".repeat(251)])("refuses the topic %s, which is none", async (odd) => {
    await using place = await openPlace();
    await using session = await place.broker.connect([], never);
    const refused = session.publish({ topic: odd, payload: Buffer.from("1") }, never);
    await expect(refused).rejects.toMatchObject({ transient: false });
  });

  test.each([
    ["persistent", 2],
    ["direct", 1],
  ] as const)(
    "sends statuses %s, and everything else guaranteed",
    async (statusDelivery, count) => {
      await using place = await openPlace({ statusDelivery });
      const guaranteed = vi.fn(() => undefined);
      place.server.faults.publish = guaranteed;
      await using session = await place.broker.connect([], never);
      const heard = await place.peer.listen(topic);
      await session.publish({ topic, payload: Buffer.from("1"), isStatus: true }, never);
      await session.publish({ topic, payload: Buffer.from("2") }, never);
      expect([(await heard()).payload, (await heard()).payload]).toEqual(["1", "2"]);
      expect(guaranteed).toHaveBeenCalledTimes(count);
    },
  );

  test("counts as confirmed what nobody subscribes to, where the broker does not tell", async () => {
    await using place = await openPlace();
    await using session = await place.broker.connect([], never);
    expect(await session.publish({ topic, payload: Buffer.from("1") }, never)).toBe("confirmed");
  });
});

describe("a broker that goes and comes back", () => {
  test("finds the worker again, with calls and answers that waited", async () => {
    await using place = await openPlace();
    place.server.createQueue("answers", {}, [topic]);
    const states: boolean[] = [];
    const lasting = reconnecting(place.broker, {
      maxAttempts: 0,
      backoff: { baseMs: 1, capMs: 20 },
      log: { info: () => {}, warn: () => {} },
      onStateChange: (connected) => states.push(connected),
    });
    await using session = await lasting.connect(["echo"], never);
    const deliveries = pull(session);
    await place.call("echo", "1", "2");
    const first = await deliveries.next();
    await place.server.stop();
    await vi.waitFor(() => expect(session.connected).toBe(false), patience);
    const answer = session.publish({ topic, payload: Buffer.from("1") }, never);
    await first.settle("accepted");
    await place.server.start();
    expect(await answer).toBe("confirmed");
    expect(states).toEqual([true, false, true]);
    // What the broker did not hear of any more comes again.
    const again = await deliveries.next();
    expect([textOf(again), again.redelivered, again.deliveryCount]).toEqual(["1", true, 2]);
    const second = await deliveries.next();
    expect(textOf(second)).toBe("2");
    await again.settle("accepted");
    await second.settle("accepted");
    await vi.waitFor(() => {
      expect(place.server.queue(defaultAddress)).toMatchObject({ depth: 0, unsettled: 0 });
    }, patience);
    expect(place.server.queue("answers")?.depth).toBe(1);
  });
});

describe("disposal", () => {
  test("tells the broker before what was settled last", async () => {
    await using place = await openPlace();
    const session = await place.broker.connect(["echo"], never);
    const deliveries = pull(session);
    await place.call("echo", "1", "2", "3");
    const came = [await deliveries.next(), await deliveries.next(), await deliveries.next()];
    await Promise.all([came[0]?.settle("accepted"), came[1]?.settle("rejected")]);
    await session[Symbol.asyncDispose]();
    expect(place.server.queue(defaultAddress)).toMatchObject({
      depth: 1,
      unsettled: 0,
      consumers: [],
      settlements: { accepted: 1, failed: 0, rejected: 1 },
    });
    await came[2]?.settle("accepted");
    expect(place.server.queue(defaultAddress)?.depth).toBe(1);
  });
});
