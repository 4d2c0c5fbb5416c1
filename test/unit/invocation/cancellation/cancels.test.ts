/**
 * Which calls a cancel reaches, now and later, and which it does not.
 */
import { describe, expect, test } from "vitest";
import { cancellableCall, senderOf } from "../../../../worker/invocation/cancellation/callers.ts";
import {
  CancelledByCaller,
  Cancels,
  type MessageSender,
  maxRememberedCancels,
  rememberedCancelMs,
} from "../../../../worker/invocation/cancellation/cancels.ts";
import { keptLog } from "../../../support/workers/kept-log.ts";

const caller: MessageSender = { replyTo: "reply/a/1", clientId: "a", user: undefined };
const call = { correlationIds: ["1"], sender: caller };

function newCancels() {
  const clock = {
    nowMs: 1,
    monotonicMs(): number {
      return this.nowMs;
    },
  };
  const log = keptLog();
  return { cancels: new Cancels(clock, log), clock, log };
}

/** Whether a cancel reaches a call that runs, and one that comes later; both must agree. */
function reaches(cancel: Partial<MessageSender>, of: Partial<MessageSender> = caller): boolean {
  const sender = { replyTo: undefined, clientId: undefined, user: undefined };
  const { cancels } = newCancels();
  const entry = () => cancels.open({ ...call, sender: { ...sender, ...of } });
  const running = entry();
  cancels.receive("1", { ...sender, ...cancel });
  expect(entry().signal.aborted).toBe(running.signal.aborted);
  return running.signal.aborted;
}

describe("a cancel", () => {
  test("stops the running call with the reason, and a second one changes nothing", () => {
    const { cancels } = newCancels();
    const { signal } = cancels.open(call);
    let aborts = 0;
    signal.addEventListener("abort", () => aborts++);
    cancels.receive("1", caller);
    cancels.receive("1", caller);
    expect(signal.reason).toBeInstanceOf(CancelledByCaller);
    expect(aborts).toBe(1);
  });

  test("stops every call of its id and caller, and none of another id", () => {
    const { cancels } = newCancels();
    const [first, second] = [cancels.open(call), cancels.open(call)];
    const other = cancels.open({ ...call, correlationIds: ["2"] });
    cancels.receive("1", caller);
    expect([first, second, other].map(({ signal }) => signal.aborted)).toEqual([true, true, false]);
  });

  test("stops a call by each of its ids", () => {
    for (const id of ["1", "rpc"]) {
      const { cancels } = newCancels();
      const { signal } = cancels.open({ ...call, correlationIds: ["1", "rpc"] });
      cancels.receive(id, caller);
      expect(signal.aborted).toBe(true);
    }
  });

  test("changes nothing for a call that has ended", () => {
    const { cancels, log } = newCancels();
    const entry = cancels.open(call);
    entry[Symbol.dispose]();
    cancels.receive("1", caller);
    cancels.receive("1", { ...caller, clientId: "b" });
    expect(entry.signal.aborted).toBe(false);
    expect(log.events).toEqual([]);
  });
});

describe("the caller of a call", () => {
  test.for<[string, Partial<MessageSender>]>([
    ["both its names", caller],
    ["its reply topic alone", { replyTo: "reply/a/1" }],
    ["its client id alone", { clientId: "a" }],
  ])("is known by %s", ([, cancel]) => {
    expect(reaches(cancel)).toBe(true);
  });

  test.for<[string, Partial<MessageSender>]>([
    ["names neither", {}],
    ["has another reply topic", { ...caller, replyTo: "reply/b/1" }],
    ["has another client id", { ...caller, clientId: "b" }],
    ["has the client id in place of the reply topic", { replyTo: "a" }],
  ])("is not a sender that %s", ([, cancel]) => {
    expect(reaches(cancel)).toBe(false);
  });

  test("has no client id but the one that the call has", () => {
    expect(reaches({ clientId: "a" }, { replyTo: "reply/a/1" })).toBe(false);
    expect(reaches(caller, { replyTo: "reply/a/1" })).toBe(false);
    expect(reaches({}, { replyTo: "reply/a/1" })).toBe(false);
  });

  test("is the verified user of a call that has one, whatever else the cancel says", () => {
    const call = { ...caller, user: "alice" };
    expect(reaches(call, call)).toBe(true);
    expect(reaches({ clientId: "a", user: "alice" }, call)).toBe(true);
    expect(reaches(caller, call)).toBe(false);
    expect(reaches({ ...caller, user: "mallory" }, call)).toBe(false);
  });

  test("may cancel as a verified user what it sent as none", () => {
    expect(reaches({ ...caller, user: "alice" })).toBe(true);
  });
});

describe("a cancel of somebody else", () => {
  test("is ignored, logged and counted, and takes nothing from that of the caller", () => {
    const { cancels, log } = newCancels();
    const { signal } = cancels.open(call);
    cancels.receive("1", { ...caller, replyTo: "reply/b/1" });
    cancels.receive("1", { replyTo: undefined, clientId: undefined, user: undefined });
    expect(signal.aborted).toBe(false);
    expect(log.factsOf("cancel.ignored")).toEqual([
      { correlationId: "1", ignored: 1 },
      { correlationId: "1", ignored: 2 },
    ]);
    cancels.receive("1", caller);
    expect(signal.aborted).toBe(true);
  });
});

describe("a cancel before its call", () => {
  test("is remembered for its lifetime, and no longer", () => {
    const { cancels, clock } = newCancels();
    cancels.receive("1", caller);
    clock.nowMs = rememberedCancelMs;
    expect(cancels.open(call).signal.reason).toBeInstanceOf(CancelledByCaller);
    clock.nowMs = rememberedCancelMs + 2;
    expect(cancels.open(call).signal.aborted).toBe(false);
  });

  test("is forgotten when too many come after it", () => {
    const { cancels } = newCancels();
    cancels.receive("1", caller);
    for (let n = 1; n < 2 * maxRememberedCancels; n++) cancels.receive(`other ${n}`, caller);
    expect(cancels.open(call).signal.aborted).toBe(true);
    cancels.receive("one too many", caller);
    cancels.receive("and one more", caller);
    expect(cancels.open({ ...call }).signal.aborted).toBe(false);
  });
});

describe("what a message says", () => {
  const delivery = {
    topic: "t",
    payload: new Uint8Array(),
    redelivered: false,
    deliveryCount: 1,
    maxDeliveries: undefined,
    properties: { replyTo: "ns/response/a/7", clientId: "a", userId: "not verified" },
    settle: () => Promise.resolve(),
  };

  test("of its sender are reply topic, client and verified user", () => {
    const sender = { replyTo: "ns/response/a/7", clientId: "a" };
    expect(senderOf(delivery)).toEqual({ ...sender, user: undefined });
    expect(senderOf({ ...delivery, sender: "alice" })).toEqual({ ...sender, user: "alice" });
  });

  test("of its call are the last level of the reply topic, and a correlation id beside it", () => {
    const idsOf = (replyTo: string, correlationId?: string) =>
      cancellableCall({ ...delivery, ...(correlationId && { correlationId }) }, replyTo)
        .correlationIds;
    expect(idsOf("ns/response/a/7")).toEqual(["7"]);
    expect(idsOf("ns/response/a/7", "7")).toEqual(["7"]);
    expect(idsOf("amqp-queue:mine", "8")).toEqual(["amqp-queue:mine", "8"]);
  });
});
