/**
 * What a session with a group's queues does: it consumes those again that the broker stopped to
 * deliver from, and refuses patterns.
 */
import { expect, test, vi } from "vitest";
import { BrokerError } from "../../../worker/broker/broker.ts";
import {
  type Consumer,
  checkPattern,
  openSome,
  reopen,
} from "../../../worker/broker/group-session.ts";
import { patience } from "../../support/patience.ts";

import { HandClock } from "./hand-clock.ts";
import { keptLog } from "../../support/workers/kept-log.ts";

const never = new AbortController().signal;
const refused = new BrokerError("not now", { transient: true });

test("a queue is tried again after growing delays until it is consumed, whatever the refusal", async () => {
  const [clock, log] = [new HandClock(), keptLog()];
  const results = [refused, new BrokerError("never", { transient: false }), undefined];
  const open = (): Promise<void> => {
    const failure = results.shift();
    return failure === undefined ? Promise.resolve() : Promise.reject(failure);
  };
  const reopening = reopen({ address: "q", open, signal: never, clock, log }, new Error("gone"));
  for (const left of [2, 1, 0]) {
    await vi.waitFor(() => expect(clock.sleeping).toBe(1), patience);
    clock.advance(15_000);
    await vi.waitFor(() => expect(results).toHaveLength(left), patience);
  }
  await reopening;
  const reasons = log.factsOf("queue.consume_refused");
  expect(reasons).toMatchObject([
    { queue: "q", reason: "gone" },
    { reason: "not now" },
    { reason: "never" },
  ]);
  expect(log.events.at(-1)).toBe("queue.consume_resumed");
  expect(clock.slept[0]).toBeLessThanOrEqual(500);
});

test("an end of the session ends the attempts", async () => {
  const [clock, log, ending] = [new HandClock(), keptLog(), new AbortController()];
  const open = vi.fn(() => Promise.resolve());
  const reopening = reopen({ address: "q", open, signal: ending.signal, clock, log }, refused);
  await vi.waitFor(() => expect(clock.sleeping).toBe(1), patience);
  ending.abort();
  await reopening;
  expect(open).not.toHaveBeenCalled();
  expect(log.events).toEqual(["queue.consume_refused"]);
});

/** A consumer that the broker refuses, or not. */
function consumer(
  refusal?: BrokerError,
): Pick<Consumer, "open" | "reopen"> & { readonly causes: unknown[] } {
  const causes: unknown[] = [];
  return {
    causes,
    open: () => (refusal === undefined ? Promise.resolve() : Promise.reject(refusal)),
    reopen: (cause) => Promise.resolve(void causes.push(cause)),
  };
}

test("consumers that the broker refuses are reopened when it accepts one", async () => {
  const [fine, broken] = [consumer(), consumer(refused)];
  await openSome([fine, broken], never);
  expect([fine.causes, broken.causes]).toEqual([[], [refused]]);
});

test("consumers of which the broker refuses all fail with the first refusal", async () => {
  const broken = [consumer(refused), consumer(new BrokerError("other", { transient: true }))];
  await expect(openSome(broken, never)).rejects.toBe(refused);
  expect(broken.flatMap(({ causes }) => causes)).toEqual([]);
});

test("opening fails with the reason of its signal when that aborts meanwhile", async () => {
  const [opening, reason] = [new AbortController(), new Error("enough")];
  const fine = { ...consumer(), open: () => Promise.resolve(opening.abort(reason)) };
  await expect(openSome([fine], opening.signal)).rejects.toBe(reason);
});

test.each(["a/b*", "*b/c", "a/>/c", ">/a", "**"])("a subscription to %s is refused", (pattern) => {
  expect(() => checkPattern(pattern)).toThrow(
    expect.objectContaining({
      transient: false,
      message: expect.stringContaining(`cannot subscribe to ${pattern}: `),
    }),
  );
});

test.each(["a/b", "a/*/c", "a/>", "*", ">"])("a subscription to %s is accepted", (pattern) => {
  expect(() => checkPattern(pattern)).not.toThrow();
});
