/**
 * A queue: who gets what, under which id, and where messages end.
 */
import { describe, expect, test } from "vitest";
import { maxLostFlows } from "../../../../harness/fakes/solace/queue.ts";
import { deadMessageQueue } from "../../../../harness/fakes/solace/router.ts";
import { Consumer, Rig, message } from "./rig.ts";

describe("consumers", () => {
  test("get nothing before they are ready, and then everything in order", () => {
    const rig = new Rig();
    rig.spool("1", "2");
    const consumer = rig.consumer("a", { window: 0 });
    expect(consumer.bodies).toEqual([]);
    consumer.open(0, 255);
    rig.spool("3");
    expect(consumer.bodies).toEqual(["1", "2", "3"]);
    expect(consumer.received.map(({ previousId }) => previousId)).toEqual([
      0,
      ...consumer.received.slice(0, -1).map(({ id }) => id),
    ]);
  });

  test("share what comes, in turn", () => {
    const rig = new Rig();
    const [a, b] = [rig.consumer("a"), rig.consumer("b")];
    rig.spool("1", "2", "3", "4");
    expect([a.bodies, b.bodies]).toEqual([
      ["1", "3"],
      ["2", "4"],
    ]);
  });

  test("stand by while another one has an exclusive queue", () => {
    const rig = new Rig({ accessType: "exclusive" });
    const a = rig.consumer("a");
    expect(rig.queue.wouldBeActive).toBe(false);
    const b = rig.consumer("b");
    rig.spool("1", "2");
    expect(b.bodies).toEqual([]);
    a.leave();
    expect(b.bodies).toEqual(["1", "2"]);
  });

  test("get as many as their window, which receipts open", () => {
    const rig = new Rig();
    const consumer = rig.consumer("a", { window: 2 });
    rig.spool("1", "2", "3");
    expect(consumer.bodies).toEqual(["1", "2"]);
    consumer.open(consumer.received[0]!.id, 2);
    expect(consumer.bodies).toEqual(["1", "2", "3"]);
  });

  test("hold no more unsettled messages than the queue lets them", () => {
    const rig = new Rig({ maxUnsettledPerFlow: 2 });
    const consumer = rig.consumer("a");
    rig.spool("1", "2", "3");
    consumer.open(consumer.last.id, 255);
    expect(consumer.bodies).toEqual(["1", "2"]);
    consumer.settle("accepted");
    expect(consumer.bodies).toEqual(["1", "2", "3"]);
  });

  test("that read too slowly get nothing further until they have caught up", () => {
    const rig = new Rig();
    const consumer = rig.consumer("a");
    consumer.isBusy = true;
    rig.spool("1");
    expect(consumer.bodies).toEqual([]);
    consumer.isBusy = false;
    rig.queue.handOut();
    expect(consumer.bodies).toEqual(["1"]);
  });

  test("leave what they did not settle to the others", () => {
    const rig = new Rig();
    const [a, b] = [rig.consumer("a"), rig.consumer("b")];
    rig.spool("1", "2", "3");
    a.settle("accepted", a.received[0]!.id);
    a.leave();
    expect(b.bodies).toEqual(["2", "3"]);
    expect(b.last).toMatchObject({ body: "3", redeliveries: 1 });
    expect(rig.queue.describe()).toMatchObject({ depth: 2, unsettled: 2, consumers: ["b"] });
  });

  test("hear why all of them are unbound", () => {
    const rig = new Rig();
    const [a, b] = [rig.consumer("a"), rig.consumer("b")];
    rig.queue.unbindAll({ code: 503, text: "Queue Shutdown" });
    expect([a.unbound, b.unbound]).toEqual([["Queue Shutdown"], ["Queue Shutdown"]]);
    expect(rig.queue.describe().consumers).toEqual([]);
  });
});

describe("settlement", () => {
  test("as accepted removes messages, however often it is repeated", () => {
    const rig = new Rig();
    const consumer = rig.consumer("a");
    rig.spool("1", "2", "3");
    const [first, , third] = consumer.received.map(({ id }) => id);
    consumer.settle("accepted", first, third);
    consumer.settle("accepted", first, third);
    expect(rig.queue.describe()).toMatchObject({
      depth: 0,
      unsettled: 0,
      settlements: { accepted: 3, failed: 0, rejected: 0 },
    });
  });

  test("concerns messages of its own flow only", () => {
    const rig = new Rig();
    const [a, b] = [rig.consumer("a"), rig.consumer("b")];
    rig.spool("1", "2", "3");
    a.settle("accepted", a.received[0]!.id, a.last.id);
    expect(rig.queue.describe().depth).toBe(1);
    b.settle("accepted");
    expect(rig.queue.describe().depth).toBe(0);
  });

  test("as failed hands the message out again, under a greater id and counted, before those behind it", () => {
    const rig = new Rig();
    const consumer = rig.consumer("a", { window: 1 });
    rig.spool("1", "2");
    const { id } = consumer.last;
    consumer.settle("failed");
    consumer.open(id, 1);
    expect(consumer.last).toMatchObject({ body: "1", redeliveries: 1, previousId: id });
    expect(consumer.last.id).toBeGreaterThan(id);
    expect(rig.queue.describe().settlements.failed).toBe(1);
  });

  test("as rejected makes a dead message of one that is eligible, and nothing of another", () => {
    const rig = new Rig();
    const dead = rig.recordDead();
    const consumer = rig.consumer("a");
    rig.queue.spool(message("bad", { eligible: true }));
    consumer.settle("rejected");
    rig.queue.spool(message("worse"));
    consumer.settle("rejected");
    expect(dead).toEqual([
      { queue: "q", topic: "t", reason: "rejected", isKept: true },
      { queue: "q", topic: "t", reason: "rejected", isKept: false },
    ]);
    expect(rig.router.queues.get(deadMessageQueue)!.describe().depth).toBe(1);
    expect(rig.queue.describe().depth).toBe(0);
  });
});

test("a dead message that is rejected is gone", () => {
  const { router } = new Rig();
  const grave = router.queues.get(deadMessageQueue)!;
  const undertaker = new Consumer(grave, "a", router.newFlowId());
  grave.bind(undertaker.flow, 0);
  undertaker.open(0, 255);
  grave.spool(message("bad", { eligible: true }));
  undertaker.settle("rejected");
  expect(undertaker.received).toHaveLength(1);
  expect(grave.describe().depth).toBe(0);
});

describe("the limit of redeliveries", () => {
  test("ends a message that failed once more than it", () => {
    const rig = new Rig({ maxRedeliveries: 2 });
    const dead = rig.recordDead();
    const consumer = rig.consumer("a");
    rig.queue.spool(message("poison", { eligible: true }));
    for (const redeliveries of [0, 1, 2]) {
      expect(consumer.last).toMatchObject({ body: "poison", redeliveries });
      consumer.settle("failed");
    }
    expect(consumer.received).toHaveLength(3);
    expect(dead).toMatchObject([{ reason: "max-redeliveries", isKept: true }]);
  });

  test("counts consumers that died over it", () => {
    const rig = new Rig({ maxRedeliveries: 1 });
    rig.spool("poison");
    rig.consumer("a").leave();
    rig.consumer("b").leave();
    expect(rig.consumer("c").received).toEqual([]);
    expect(rig.queue.describe().depth).toBe(0);
  });

  test("of nothing is none", () => {
    const rig = new Rig({ maxRedeliveries: 0 });
    const consumer = rig.consumer("a");
    rig.spool("1");
    for (let n = 0; n < 50; n++) consumer.settle("failed");
    expect(consumer.last).toMatchObject({ body: "1", redeliveries: 50 });
  });
});

describe("a consumer that comes back", () => {
  test("gets under their former ids what it may have in hand, and then what is new", () => {
    const rig = new Rig();
    const before = rig.consumer("a", { window: 3 });
    rig.spool("1", "2", "3", "4");
    before.open(before.received[0]!.id, 2);
    const former = before.received.map(({ id }) => id);
    before.leave();
    const after = rig.consumer("a", { lastReceived: former[1]! });
    expect(after.bodies).toEqual(["1", "2", "3", "4"]);
    expect(after.received.slice(0, 3).map(({ id }) => id)).toEqual(former.slice(0, 3));
    expect(after.last.id).toBeGreaterThan(former[2]!);
  });

  test("does so also when it was lost again before it received anything", () => {
    const rig = new Rig();
    const before = rig.consumer("a");
    rig.spool("1");
    const { id } = before.last;
    before.leave();
    rig.consumer("a", { lastReceived: id, window: 0 }).leave();
    expect(rig.consumer("a", { lastReceived: id }).last.id).toBe(id);
  });

  test("gets new ids for what another consumer had meanwhile", () => {
    const rig = new Rig();
    const before = rig.consumer("a");
    rig.spool("1");
    const { id } = before.last;
    before.leave();
    rig.consumer("b").leave();
    expect(rig.consumer("a", { lastReceived: id }).last.id).toBeGreaterThan(id);
  });

  test("is a new one where its name is another's, it received nothing, or the broker forgets", () => {
    const rig = new Rig();
    const before = rig.consumer("a");
    rig.spool("1");
    const ids = [before.last.id];
    before.leave();
    for (const [name, lastReceived] of [
      ["b", ids[0]!],
      ["b", 0],
    ] as const) {
      const next = rig.consumer(name, { lastReceived });
      ids.push(next.last.id);
      next.leave();
    }
    rig.router.faults.forgetsConsumers = true;
    ids.push(rig.consumer("b", { lastReceived: ids[2]! }).last.id);
    expect(new Set(ids).size).toBe(4);
  });

  test("is forgotten when many others were lost after it", () => {
    const rig = new Rig();
    const before = rig.consumer("a");
    rig.spool("1");
    const { id } = before.last;
    before.leave();
    for (let n = 0; n < maxLostFlows; n++) rig.consumer("b", { window: 0 }).leave();
    expect(rig.consumer("a", { lastReceived: id }).last.id).toBeGreaterThan(id);
  });
});

describe("time to live", () => {
  test("ends messages that wait, where the queue respects it", () => {
    const rig = new Rig({ respectsTimeToLive: true });
    const dead = rig.recordDead();
    rig.queue.spool(message("short", { ttlMs: 50, eligible: true }));
    rig.queue.spool(message("long", { ttlMs: 5_000 }));
    rig.nowMs += 50;
    rig.queue.expire();
    expect(dead).toEqual([{ queue: "q", topic: "t", reason: "expired", isKept: true }]);
    expect(rig.consumer("a").bodies).toEqual(["long"]);
  });

  test("is looked at when a message would be handed out", () => {
    const rig = new Rig({ respectsTimeToLive: true });
    rig.queue.spool(message("short", { ttlMs: 50 }));
    rig.nowMs += 50;
    expect(rig.consumer("a").bodies).toEqual([]);
    expect(rig.queue.describe().depth).toBe(0);
  });

  test("is nothing to a queue that does not respect it", () => {
    const rig = new Rig();
    rig.queue.spool(message("short", { ttlMs: 50 }));
    rig.nowMs += 50;
    rig.queue.expire();
    expect(rig.consumer("a").bodies).toEqual(["short"]);
  });
});

describe("what a queue takes", () => {
  test("ends at its quota, and goes on when there is room again", () => {
    const rig = new Rig({ quotaMb: 1 });
    const large = message("x".repeat(600_000));
    expect(rig.queue.refusal(large)).toBeUndefined();
    rig.queue.spool(large);
    expect(rig.queue.refusal(large)).toEqual({ code: 503, text: "Spool Over Quota" });
    rig.consumer("a").settle("accepted");
    expect(rig.queue.refusal(large)).toBeUndefined();
  });

  test("is no message that is too large", () => {
    const rig = new Rig({ maxMessageBytes: 1_000 });
    expect(rig.queue.refusal(message("x".repeat(1_000)))).toMatchObject({ code: 400 });
    expect(rig.queue.refusal(message("x"))).toBeUndefined();
  });
});
