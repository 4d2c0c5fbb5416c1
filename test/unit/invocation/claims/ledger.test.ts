/**
 * What is remembered of calls, for how long, and which of their deliveries belong together.
 */
import { describe, expect, test } from "vitest";
import type { Delivery } from "../../../../worker/broker/broker.ts";
import type { EncodedResponse } from "../../../../worker/invocation/answers.ts";
import {
  Ledger,
  type RunningEntry,
  deduplicationKey,
  maxDeliveriesOfCall,
  maxRememberedAnswers,
  maxRememberedBytes,
  rememberedMs,
} from "../../../../worker/invocation/claims/ledger.ts";

/** A clock that stands still until it is set. */
class SetClock {
  nowMs = 0;
  monotonicMs(): number {
    return this.nowMs;
  }
}

function delivery(changes: Partial<Delivery> = {}): Delivery {
  return {
    topic: "tool/echo",
    payload: Buffer.from("{}"),
    redelivered: false,
    deliveryCount: 1,
    maxDeliveries: undefined,
    properties: {},
    settle: () => Promise.resolve(),
    ...changes,
  };
}

const response = (id: string, bytes = 10): EncodedResponse => ({
  id,
  payload: new Uint8Array(bytes),
});

/** The entry of a call that is new. */
function open(ledger: Ledger, key: string, first = delivery()): RunningEntry {
  const known = ledger.receive(key, first);
  if (known.state !== "new") throw new Error(`the call is ${known.state}`);
  return known.entry;
}

function answer(ledger: Ledger, key: string, bytes?: number): void {
  open(ledger, key).end(response(key, bytes));
}

describe("a call", () => {
  test("is new once, then running, and answered in the end", () => {
    const ledger = new Ledger(new SetClock());
    const entry = open(ledger, "a");
    expect(ledger.receive("a", delivery())).toEqual({ state: "running" });
    entry.end(response("a"));
    expect(ledger.receive("a", delivery())).toEqual({ state: "answered", response: response("a") });
    expect(ledger.receive("b", delivery())).toMatchObject({ state: "new" });
  });

  test("keeps so many of its deliveries, and has the broker keep no older ones", () => {
    const settled: string[] = [];
    const nth = (n: number): Delivery =>
      delivery({
        deliveryCount: n,
        settle: (outcome) => Promise.resolve(void settled.push(`${n} ${outcome}`)),
      });
    const ledger = new Ledger(new SetClock());
    const entry = open(ledger, "a", nth(1));
    for (let n = 2; n <= maxDeliveriesOfCall + 2; n++) ledger.receive("a", nth(n));
    expect(settled).toEqual(["1 accepted", "2 accepted"]);
    expect(entry.end(undefined).map(({ deliveryCount }) => deliveryCount)[0]).toBe(3);
  });

  test("that comes again keeps none of its deliveries whose connection is gone", () => {
    const settled: string[] = [];
    let isLost = false;
    const first = delivery({ settle: async (outcome) => void settled.push(outcome) });
    const lost = Object.defineProperty(first, "isLost", { get: () => isLost });
    const ledger = new Ledger(new SetClock());
    const entry = open(ledger, "a", lost);
    const [second, third] = [delivery({ deliveryCount: 2 }), delivery({ deliveryCount: 3 })];
    ledger.receive("a", second);
    expect(settled).toEqual([]);
    isLost = true;
    ledger.receive("a", third);
    expect(settled).toEqual(["accepted"]);
    expect(entry.end(undefined)).toEqual([second, third]);
  });

  test("is known to run as long as it does", () => {
    const ledger = new Ledger(new SetClock());
    expect(ledger.isRunning("a")).toBe(false);
    const entry = open(ledger, "a");
    expect([ledger.isRunning("a"), ledger.isRunning("b")]).toEqual([true, false]);
    entry.end(response("a"));
    expect(ledger.isRunning("a")).toBe(false);
  });

  test("that ends with nothing to remember is new again", () => {
    const ledger = new Ledger(new SetClock());
    open(ledger, "a").end(undefined);
    expect(ledger.receive("a", delivery()).state).toBe("new");
  });

  test("that is not ended is forgotten by whoever owned it", () => {
    const ledger = new Ledger(new SetClock());
    {
      using _entry = open(ledger, "a");
    }
    expect(ledger.receive("a", delivery()).state).toBe("new");
  });

  test("that was ended is not forgotten by disposal, and gives its deliveries away once", () => {
    const ledger = new Ledger(new SetClock());
    const entry = open(ledger, "a");
    expect(entry.end(response("a"))).toHaveLength(1);
    expect(entry.end(undefined)).toEqual([]);
    entry[Symbol.dispose]();
    expect(ledger.receive("a", delivery()).state).toBe("answered");
  });

  test("ends with every delivery that came until then, and none that came later", () => {
    const ledger = new Ledger(new SetClock());
    const deliveries = [delivery(), delivery({ deliveryCount: 2 }), delivery({ deliveryCount: 3 })];
    const entry = open(ledger, "a", deliveries[0]);
    for (const later of deliveries.slice(1)) ledger.receive("a", later);
    const ended = entry.end(undefined);
    expect(ended).toEqual(deliveries);
    open(ledger, "a");
    expect(ended).toHaveLength(3);
  });

  test("keeps its newest deliveries when it has too many", () => {
    const ledger = new Ledger(new SetClock());
    const entry = open(ledger, "a");
    const newest = delivery();
    for (let n = 1; n < maxDeliveriesOfCall; n++) ledger.receive("a", delivery());
    ledger.receive("a", newest);
    const ended = entry.end(undefined);
    expect(ended).toHaveLength(maxDeliveriesOfCall);
    expect(ended.at(-1)).toBe(newest);
  });
});

describe("an answer is remembered", () => {
  test("for a time from when it was given", () => {
    const clock = new SetClock();
    const ledger = new Ledger(clock);
    const entry = open(ledger, "a");
    clock.nowMs = 500_000;
    entry.end(response("a"));
    clock.nowMs += rememberedMs;
    expect(ledger.receive("a", delivery()).state).toBe("answered");
    clock.nowMs += 1;
    expect(ledger.receive("a", delivery()).state).toBe("new");
    expect(ledger.remembered).toBe(0);
  });

  test("and no longer: expired ones leave the memory with later answers", () => {
    const clock = new SetClock();
    clock.nowMs = 500_000;
    const ledger = new Ledger(clock);
    for (let n = 0; n < 100; n++) answer(ledger, `${n}`);
    clock.nowMs += rememberedMs + 1;
    answer(ledger, "later");
    expect(ledger.remembered).toBe(1);
  });

  test("until there are too many, of which the least recently used go", () => {
    const ledger = new Ledger(new SetClock());
    for (let n = 0; n <= maxRememberedAnswers; n++) answer(ledger, `${n}`);
    expect(ledger.remembered).toBe(maxRememberedAnswers);
    expect(ledger.receive("0", delivery()).state).toBe("new");
    expect(ledger.receive("1", delivery()).state).toBe("answered");
  });

  test(
    "until they are too large together, of which the least recently used go",
    { tags: "promise-B8" },
    () => {
      const ledger = new Ledger(new SetClock());
      answer(ledger, "old", maxRememberedBytes / 2);
      answer(ledger, "kept", maxRememberedBytes / 2);
      expect(ledger.remembered).toBe(2);
      answer(ledger, "new", 1);
      expect(ledger.receive("old", delivery()).state).toBe("new");
      expect(ledger.receive("kept", delivery()).state).toBe("answered");
      expect(ledger.receive("new", delivery()).state).toBe("answered");
    },
  );

  test("not at all when it is larger than all together may be", () => {
    const ledger = new Ledger(new SetClock());
    answer(ledger, "huge", maxRememberedBytes + 1);
    expect(ledger.remembered).toBe(0);
    answer(ledger, "small", 1);
    expect(ledger.remembered).toBe(1);
  });

  test("however many calls run", () => {
    const ledger = new Ledger(new SetClock());
    const entries = Array.from({ length: 100 }, (_, n) => open(ledger, `${n}`));
    answer(ledger, "answered");
    expect(ledger.receive("answered", delivery()).state).toBe("answered");
    expect(entries.map((entry) => entry.end(undefined).length)).toEqual(entries.map(() => 1));
  });
});

describe("two deliveries are of one call", () => {
  const of = (text: string, topic = "tool/echo", replyTo = "reply/1") =>
    deduplicationKey({ topic, payload: Buffer.from(text) }, replyTo);
  const first = of('{"id":"1"}');

  test("when topic, reply topic and request are the same", () => {
    expect(of('{"id":"1"}')).toBe(first);
  });

  test.for([
    ["id", of('{"id":"2"}')],
    ["arguments, by a caller that uses an id again", of('{"id":"1","params":{}}')],
    ["reply topic", of('{"id":"1"}', "tool/echo", "reply/2")],
    ["tool", of('{"id":"1"}', "tool/other")],
  ])("but not with another %s", ([, other]) => {
    expect(other).not.toBe(first);
  });

  test("and what stands in one part is not taken for another", () => {
    expect(of("c", "b", "a")).not.toBe(of("bc", "", "a"));
    expect(of("c", "b", "a")).not.toBe(of("c", "", "ab"));
  });
});
