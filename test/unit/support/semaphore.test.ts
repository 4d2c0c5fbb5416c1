/**
 * The slots that bound how many calls run and wait.
 */
import { fc, test as propertyTest } from "../../support/properties/property.ts";
import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { Semaphore, SemaphoreFullError } from "../../../worker/support/semaphore.ts";

const never = new AbortController().signal;

describe("slots", () => {
  test("are leased at once while some are free", async () => {
    const slots = new Semaphore({ capacity: 2, maxWaiting: 0 });
    using _first = await slots.acquire(never);
    using _second = await slots.acquire(never);
    expect(slots.inUse).toBe(2);
    expect(slots.waiting).toBe(0);
  });

  test("go to those who wait in the order in which they asked", async () => {
    const slots = new Semaphore({ capacity: 1, maxWaiting: 10 });
    const first = await slots.acquire(never);
    const order: number[] = [];
    const waiting = [1, 2, 3, 4].map(async (number) => {
      using _lease = await slots.acquire(never);
      order.push(number);
    });
    expect(slots.waiting).toBe(4);
    first[Symbol.dispose]();
    await Promise.all(waiting);
    expect(order).toEqual([1, 2, 3, 4]);
    expect(slots.inUse).toBe(0);
  });

  test("are not handed to a newcomer before those who wait", async () => {
    const slots = new Semaphore({ capacity: 1, maxWaiting: 10 });
    const first = await slots.acquire(never);
    const waiter = slots.acquire(never);
    first[Symbol.dispose]();
    const newcomer = slots.acquire(never);
    expect(slots.waiting).toBe(1);
    (await waiter)[Symbol.dispose]();
    (await newcomer)[Symbol.dispose]();
  });

  test("refuse at once when the line is full, and say how long the line is", async () => {
    const slots = new Semaphore({ capacity: 1, maxWaiting: 1 });
    using _lease = await slots.acquire(never);
    const leaving = new AbortController();
    const waiting = slots.acquire(leaving.signal);
    await expect(slots.acquire(never)).rejects.toThrow(
      expect.objectContaining({ name: "SemaphoreFullError", maxWaiting: 1 }),
    );
    leaving.abort();
    await expect(waiting).rejects.toThrow();
    const next = slots.acquire(never);
    expect(slots.waiting).toBe(1);
    _lease[Symbol.dispose]();
    (await next)[Symbol.dispose]();
  });

  test("with no room in line refuse whoever would have to wait", async () => {
    const slots = new Semaphore({ capacity: 1, maxWaiting: 0 });
    using _lease = await slots.acquire(never);
    await expect(slots.acquire(never)).rejects.toThrow(SemaphoreFullError);
  });

  test("let go of somebody who stops waiting, with the reason why, and of nobody else", async () => {
    const slots = new Semaphore({ capacity: 1, maxWaiting: 2 });
    const lease = await slots.acquire(never);
    const impatient = new AbortController();
    const reason = new Error("waited long enough");
    const leaves = slots.acquire(impatient.signal);
    const stays = slots.acquire(never);
    impatient.abort(reason);
    await expect(leaves).rejects.toBe(reason);
    expect(slots.waiting).toBe(1);
    lease[Symbol.dispose]();
    using _next = await stays;
    expect(slots.inUse).toBe(1);
  });

  test("are not leased to somebody who has given up before asking", async () => {
    const slots = new Semaphore({ capacity: 1, maxWaiting: 1 });
    const reason = new Error("gone");
    await expect(slots.acquire(AbortSignal.abort(reason))).rejects.toBe(reason);
    expect(slots.inUse).toBe(0);
  });

  test("stay leased when the signal aborts after the lease was given", async () => {
    const slots = new Semaphore({ capacity: 1, maxWaiting: 1 });
    const first = await slots.acquire(never);
    const later = new AbortController();
    const second = slots.acquire(later.signal);
    first[Symbol.dispose]();
    later.abort();
    using _lease = await second;
    expect(slots.inUse).toBe(1);
  });

  test("are given back once, however often a lease is disposed", async () => {
    const slots = new Semaphore({ capacity: 2, maxWaiting: 0 });
    const lease = await slots.acquire(never);
    using _other = await slots.acquire(never);
    lease[Symbol.dispose]();
    lease[Symbol.dispose]();
    expect(slots.inUse).toBe(1);
  });
});

/**
 * One thing that may happen to a set of slots; `which` picks among the requests it can happen to.
 */
type Step = { readonly kind: "acquire" | "release" | "abort"; readonly which: number };

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.record({
    kind: fc.constantFrom("acquire" as const, "acquire" as const, "release", "abort"),
    which: fc.nat(20),
  }),
  { maxLength: 60 },
);

/** A request for a slot and what has become of it. */
class Request {
  readonly #abort = new AbortController();
  lease: Disposable | undefined;
  fate: "pending" | "leased" | "aborted" | "refused" = "pending";

  constructor(slots: Semaphore) {
    slots.acquire(this.#abort.signal).then(
      (lease) => {
        this.lease = lease;
        this.fate = "leased";
      },
      (error: unknown) => {
        this.fate = error instanceof SemaphoreFullError ? "refused" : "aborted";
      },
    );
  }

  abort(): void {
    this.#abort.abort();
  }
}

describe("slots, whatever happens to them", () => {
  propertyTest.prop([fc.integer({ min: 1, max: 4 }), fc.integer({ min: 0, max: 5 }), steps])(
    "never lease more than there are, refuse nobody who fits, and keep the line's order",
    async (capacity, maxWaiting, happenings) => {
      const slots = new Semaphore({ capacity, maxWaiting });
      let line: Request[] = [];
      let holders: Request[] = [];
      for (const { kind, which } of happenings) {
        if (kind === "acquire") {
          const request = new Request(slots);
          await nextTurn();
          if (holders.length < capacity) {
            expect(request.fate).toBe("leased");
            holders.push(request);
          } else if (line.length < maxWaiting) {
            expect(request.fate).toBe("pending");
            line.push(request);
          } else {
            expect(request.fate).toBe("refused");
          }
        } else if (kind === "release" && holders.length > 0) {
          const leaving = holders[which % holders.length]!;
          leaving.lease![Symbol.dispose]();
          const next = line.shift();
          holders = holders.filter((holder) => holder !== leaving);
          if (next !== undefined) holders.push(next);
        } else if (kind === "abort" && line.length > 0) {
          const leaving = line[which % line.length]!;
          leaving.abort();
          line = line.filter((waiter) => waiter !== leaving);
          await nextTurn();
          expect(leaving.fate).toBe("aborted");
        }
        await nextTurn();
        expect(slots.inUse).toBe(holders.length);
        expect(slots.waiting).toBe(line.length);
        expect(holders.map(({ fate }) => fate)).toEqual(holders.map(() => "leased"));
        expect(line.map(({ fate }) => fate)).toEqual(line.map(() => "pending"));
      }
    },
  );
});
