/**
 * Several sessions that serve one tool.
 */
import { beforeEach, describe, expect, test, vi } from "vitest";
import { patience } from "../../support/patience.ts";
import { Acceptor, type Suite, never, numbers, publishCalls, pull, textOf } from "./under-test.ts";

/** Runs the promises about work that is shared, or not. */
export function describeSharing(suite: Suite): void {
  const { name, create, capabilities } = suite;

  if (!capabilities.shares) {
    test("gives every session a copy of a call, where it shares none", async () => {
      await using under = await create();
      await using one = await under.broker.connect(["echo"], never);
      await using other = await under.broker.connect(["echo"], never);
      await publishCalls(under, "echo", ["1"]);
      expect(textOf(await pull(one).next())).toBe("1");
      expect(textOf(await pull(other).next())).toBe("1");
    });
  }

  describe("shared work", () => {
    beforeEach((context) => {
      context.skip(!capabilities.shares, `the ${name} broker gives every session a copy`);
    });
    describeSharedWork(suite);
  });

  describe("a durable queue", () => {
    beforeEach((context) => {
      context.skip(!capabilities.durable, `the ${name} broker keeps nothing for who is not there`);
    });

    test("keeps the calls of a tool while no session is there", async () => {
      await using under = await create();
      const former = await under.broker.connect(["echo"], never);
      await former[Symbol.asyncDispose]();
      await publishCalls(under, "echo", numbers(3));
      await using session = await under.broker.connect(["echo"], never);
      const deliveries = pull(session);
      for (const text of numbers(3)) {
        const delivery = await deliveries.next();
        expect(delivery).toMatchObject({ redelivered: false, deliveryCount: 1 });
        expect(textOf(delivery)).toBe(text);
      }
    });
  });
}

function describeSharedWork({ create }: Suite): void {
  test("goes to each of three sessions that wait for it", async () => {
    await using under = await create();
    await using first = await under.broker.connect(["echo"], never);
    await using second = await under.broker.connect(["echo"], never);
    await using third = await under.broker.connect(["echo"], never);
    const pending = [first, second, third].map((session) => pull(session).next());
    await publishCalls(under, "echo", numbers(3));
    const deliveries = await Promise.all(pending);
    expect(deliveries.map(textOf).toSorted()).toEqual(numbers(3));
  });

  test("is done once, however many sessions serve the tool", async () => {
    await using under = await create();
    await using first = await under.broker.connect(["echo"], never);
    await using second = await under.broker.connect(["echo"], never);
    await using third = await under.broker.connect(["echo"], never);
    const workers = [first, second, third].map((session) => new Acceptor(session));
    const done = (): readonly string[] => workers.flatMap((worker) => worker.texts);
    await publishCalls(under, "echo", numbers(30));
    await vi.waitFor(() => expect(done().length).toBeGreaterThanOrEqual(30), patience);
    for (const worker of workers) await worker.finish();
    expect(inOrder(done())).toEqual(numbers(30));
  });

  test("goes to any session of the group, whichever of its tools that serves", async () => {
    await using under = await create();
    {
      await using _former = await under.broker.connect(["echo"], never);
    }
    await using session = await under.broker.connect(["other"], never);
    const deliveries = pull(session);
    await publishCalls(under, "echo", ["1"]);
    await publishCalls(under, "other", ["2"]);
    expect(textOf(await deliveries.next())).toBe("1");
    expect(textOf(await deliveries.next())).toBe("2");
  });

  test("is done once, though a session leaves the tool meanwhile", async () => {
    await using under = await create();
    await using leaving = await under.broker.connect(["echo"], never);
    await using staying = await under.broker.connect(["echo"], never);
    await publishCalls(under, "echo", numbers(10));
    await leaving.leave("echo", never);
    await publishCalls(under, "echo", ["10", "11"]);
    const workers = [leaving, staying].map((session) => new Acceptor(session));
    const done = (): readonly string[] => workers.flatMap((worker) => worker.texts);
    await vi.waitFor(() => expect(done().length).toBeGreaterThanOrEqual(12), patience);
    for (const worker of workers) await worker.finish();
    expect(inOrder(done())).toEqual(numbers(12));
  });

  test("that a session has taken stays its own when it leaves the tool", async () => {
    await using under = await create();
    await using leaving = await under.broker.connect(["echo"], never);
    const deliveries = pull(leaving);
    await publishCalls(under, "echo", ["1"]);
    const taken = await deliveries.next();
    await leaving.leave("echo", never);
    await leaving.pause();
    await using staying = await under.broker.connect(["echo"], never);
    await taken.settle("accepted");
    await publishCalls(under, "echo", ["2"]);
    const delivery = await pull(staying).next();
    expect([textOf(delivery), delivery.redelivered]).toEqual(["2", false]);
  });
}

function inOrder(texts: readonly string[]): readonly string[] {
  return texts.toSorted((a, b) => Number(a) - Number(b));
}
