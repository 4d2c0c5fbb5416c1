/**
 * How old a call is, and by whose clock.
 */
import { describe, expect, test } from "vitest";
import { CallTooOld, requireFresh, withSendingTime } from "../../../worker/invocation/age.ts";

const address = { replyTo: "reply", statusTo: undefined, sentAtMs: 1_000 };
const keepsCalls = { redelivers: true };

describe("the age of a call counts", () => {
  test("from the sender's time", () => {
    expect(withSendingTime(address, {}, keepsCalls)).toEqual(address);
  });

  test("from the broker's time where it tells one, whatever the sender's clock says", () => {
    const dated = withSendingTime(address, { brokerTimeMs: 9_000 }, keepsCalls);
    expect(dated).toEqual({ ...address, sentAtMs: 9_000, sentAtClock: "broker" });
  });

  test("from nothing where the broker keeps no calls", () => {
    const dated = withSendingTime(address, {}, { redelivers: false });
    expect(dated.sentAtMs).toBeUndefined();
  });
});

describe("a call that comes too late", () => {
  const times = { limitMs: 5_000, deadlineMs: 16_000 };

  test("is refused with its age and both clocks", () => {
    const late = { sentAtMs: 1_000 };
    expect(() => requireFresh(times, late, 13_000)).toThrow(CallTooOld);
    const age = { ageMs: 12_000, sentAtMs: 1_000, receivedAtMs: 13_000, clock: "sender" };
    expect(() => requireFresh(times, late, 13_000)).toThrow(expect.objectContaining({ age }));
  });

  test("is none while its answer would find its caller waiting", () => {
    const call = { sentAtMs: 1_000, sentAtClock: "broker" as const };
    expect(() => requireFresh(times, call, 10_999)).not.toThrow();
  });
});
