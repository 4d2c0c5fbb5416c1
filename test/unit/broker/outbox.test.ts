/**
 * The outbox: what goes out when, and what is left behind.
 */
import { getEventListeners } from "node:events";
import { describe, expect, test, vi } from "vitest";
import {
  BrokerError,
  type OutboundMessage,
  type PublishOutcome,
  type SessionEnd,
} from "../../../worker/broker/broker.ts";
import { Outbox, lossNoticeMs, retryDelaysMs } from "../../../worker/broker/outbox.ts";
import { patience } from "../../support/patience.ts";
import { HandClock } from "./hand-clock.ts";

/** A session whose confirmations come when the test says so. */
class SlowSession {
  readonly sent: string[] = [];
  readonly properties: OutboundMessage["properties"][] = [];
  readonly #confirmations: PromiseWithResolvers<PublishOutcome>[] = [];
  readonly #end = Promise.withResolvers<SessionEnd>();
  readonly closed = this.#end.promise;

  publish(message: OutboundMessage): Promise<PublishOutcome> {
    this.sent.push(Buffer.from(message.payload).toString());
    this.properties.push(message.properties);
    const confirmation = Promise.withResolvers<PublishOutcome>();
    this.#confirmations.push(confirmation);
    return confirmation.promise;
  }

  confirm(outcome: PublishOutcome = "confirmed"): void {
    this.#confirmations.shift()?.resolve(outcome);
  }

  fail(error: BrokerError): void {
    this.#confirmations.shift()?.reject(error);
  }

  end(): void {
    this.#end.resolve({ reason: "lost" });
  }
}

const lost = new BrokerError("lost", { transient: true });
const refused = new BrokerError("refused", { transient: false });
const never = new AbortController().signal;

function message(payload: string): OutboundMessage {
  return { topic: "t", payload: Buffer.from(payload) };
}

describe("an outbox", () => {
  test("sends nothing while it has no session, and everything in order when it gets one", async () => {
    const outbox = new Outbox(new HandClock());
    const former = new SlowSession();
    outbox.attach(former);
    outbox.detach();
    const publishing = ["1", "2", "3"].map((payload) => outbox.publish(message(payload), never));
    const session = new SlowSession();
    outbox.attach(session);
    expect(former.sent).toEqual([]);
    expect(session.sent).toEqual(["1", "2", "3"]);
    for (const each of publishing) {
      session.confirm();
      await each;
    }
  });

  test("says of a message what the broker said that got it", async () => {
    const outbox = new Outbox(new HandClock());
    const [former, session] = [new SlowSession(), new SlowSession()];
    outbox.attach(former);
    const [first, second] = [
      outbox.publish(message("1"), never),
      outbox.publish(message("2"), never),
    ];
    former.confirm("unroutable");
    expect(await first).toBe("unroutable");
    outbox.attach(session);
    session.confirm("unroutable");
    expect(await second).toBe("unroutable");
  });

  test("says of what it sends again that there may be a copy", async () => {
    const outbox = new Outbox(new HandClock());
    const [former, session] = [new SlowSession(), new SlowSession()];
    outbox.attach(former);
    void outbox.publish({ ...message("1"), properties: { a: "b" } }, never);
    former.fail(lost);
    former.end();
    outbox.detach();
    void outbox.publish(message("2"), never);
    outbox.attach(session);
    await vi.waitFor(() => expect(session.sent).toEqual(["1", "2"]), patience);
    expect(former.properties).toEqual([{ a: "b" }]);
    expect(session.properties).toEqual([{ a: "b", resent: true }, undefined]);
  });

  test("sends again what was not confirmed, before what came later", async () => {
    const outbox = new Outbox(new HandClock());
    const former = new SlowSession();
    outbox.attach(former);
    const confirmed = outbox.publish(message("1"), never);
    const unconfirmed = outbox.publish(message("2"), never);
    former.confirm();
    await confirmed;
    former.end();
    former.fail(lost);
    outbox.detach();
    const later = outbox.publish(message("3"), never);
    const session = new SlowSession();
    outbox.attach(session);
    expect(session.sent).toEqual(["2", "3"]);
    session.confirm();
    session.confirm();
    await Promise.all([unconfirmed, later]);
  });

  test("does not let a former session fail what is on its way on the next", async () => {
    const outbox = new Outbox(new HandClock());
    const [former, session] = [new SlowSession(), new SlowSession()];
    outbox.attach(former);
    const publishing = outbox.publish(message("1"), never);
    outbox.attach(session);
    former.fail(refused);
    await new Promise(setImmediate);
    session.confirm();
    await publishing;
  });

  describe("with a message that is retried and that the broker refuses", () => {
    const overloaded = new BrokerError("too much waits already", { transient: true });

    /** A broker that refuses so many attempts. */
    function refusing(attempts: number) {
      const waits: number[] = [];
      const refusals: string[] = [];
      let tried = 0;
      const clock = new HandClock();
      const sleep = (ms: number): Promise<void> => (waits.push(ms), Promise.resolve());
      const outbox = new Outbox(Object.assign(clock, { sleep }), (_, error) =>
        refusals.push(error.message),
      );
      outbox.attach({
        closed: new Promise(() => {}),
        publish: () =>
          tried++ < attempts ? Promise.reject(overloaded) : Promise.resolve("confirmed"),
      });
      // Each comes after a wait for the session to say that it ended.
      return { outbox, refusals, delays: () => waits.filter((_, index) => index % 2 === 1) };
    }

    const retried = { ...message("1"), isRetried: true };

    test("publishes it again after growing delays, and reports each refusal", async () => {
      const { outbox, refusals, delays } = refusing(2);
      expect(await outbox.publish(retried, never)).toBe("confirmed");
      expect(delays()).toEqual(retryDelaysMs.slice(0, 2));
      expect(refusals).toEqual([overloaded.message, overloaded.message]);
    });

    test("rejects it after the last delay", async () => {
      const { outbox, delays } = refusing(Infinity);
      await expect(outbox.publish(retried, never)).rejects.toBe(overloaded);
      expect(delays()).toEqual(retryDelaysMs);
    });

    test("rejects any other message at once", async () => {
      const { outbox, delays } = refusing(1);
      await expect(outbox.publish(message("1"), never)).rejects.toBe(overloaded);
      expect(delays()).toEqual([]);
    });

    test("marks each copy but the first, and holds the message between them", async () => {
      const clock = new HandClock();
      const session = new SlowSession();
      const outbox = new Outbox(clock);
      outbox.attach(session);
      const publishing = outbox.publish(retried, never);
      await refuse(session, clock);
      const next = new SlowSession();
      outbox.attach(next);
      next.confirm();
      await publishing;
      expect(session.properties).toEqual([undefined]);
      expect(next.properties).toEqual([{ resent: true }]);
    });

    test.each(["closed", "aborted"])("is not tried again when it is %s meanwhile", async (how) => {
      const clock = new HandClock();
      const session = new SlowSession();
      const refusals: string[] = [];
      const outbox = new Outbox(clock, (_, error) => refusals.push(error.message));
      outbox.attach(session);
      const caller = new AbortController();
      const publishing = outbox.publish(retried, caller.signal);
      await refuse(session, clock);
      if (how === "closed") outbox.close(overloaded);
      else caller.abort(overloaded);
      await expect(publishing).rejects.toBe(overloaded);
      await vi.waitFor(() => expect(clock.sleeping).toBe(0), patience);
      expect(session.sent).toHaveLength(1);
      expect(refusals).toHaveLength(1);
    });

    /** Refuses what was sent, until the outbox waits for its next attempt. */
    async function refuse(session: SlowSession, clock: HandClock): Promise<void> {
      session.fail(overloaded);
      await vi.waitFor(() => expect(clock.sleeping).toBe(1), patience);
      clock.advance(lossNoticeMs);
      await vi.waitFor(() => expect(clock.slept).toEqual([lossNoticeMs, retryDelaysMs[0]]));
    }
  });

  test("leaves neither listeners nor sleepers behind", async () => {
    const clock = new HandClock();
    const outbox = new Outbox(clock);
    const [former, session] = [new SlowSession(), new SlowSession()];
    const { signal } = new AbortController();
    outbox.attach(former);
    const publishing = outbox.publish(message("1"), signal);
    former.end();
    former.fail(lost);
    await new Promise(setImmediate);
    expect(clock.sleeping).toBe(0);
    outbox.attach(session);
    session.confirm();
    await publishing;
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });

  test("that was closed fails what it holds and what comes", async () => {
    const outbox = new Outbox(new HandClock());
    const held = outbox.publish(message("1"), never);
    outbox.close(refused);
    await expect(held).rejects.toBe(refused);
    await expect(outbox.publish(message("2"), never)).rejects.toBe(refused);
  });
});
