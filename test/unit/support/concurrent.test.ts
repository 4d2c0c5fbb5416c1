/**
 * Work on the items of a list, several at once.
 */
import { describe, expect, test } from "vitest";
import { mapConcurrently } from "../../../worker/support/concurrent.ts";
import { abortable } from "../../../worker/support/timeout.ts";

const never = new AbortController().signal;

/** Calls that go on until the test settles them, by item. */
function newWork() {
  const started: string[] = [];
  const aborted = new Map<string, unknown>();
  const settlers = new Map<string, PromiseWithResolvers<string>>();
  const work = async (item: string, signal: AbortSignal): Promise<string> => {
    started.push(item);
    const settler = Promise.withResolvers<string>();
    settlers.set(item, settler);
    return abortable(settler.promise, signal).catch((error: unknown) => {
      if (signal.aborted) aborted.set(item, error);
      throw error;
    });
  };
  const settler = (item: string): PromiseWithResolvers<string> => settlers.get(item)!;
  const finish = async (item: string): Promise<void> => {
    settler(item).resolve(`${item}!`);
    await new Promise(setImmediate);
  };
  return {
    started,
    aborted,
    work,
    finish,
    fail: (item: string, e: Error) => settler(item).reject(e),
  };
}

describe("work on a list", () => {
  test("runs so many at once, the next one when one has ended, and keeps the order", async () => {
    const { started, work, finish } = newWork();
    const all = mapConcurrently(["a", "b", "c", "d"], 2, never, work);
    expect(started).toEqual(["a", "b"]);
    await finish("b");
    expect(started).toEqual(["a", "b", "c"]);
    await finish("c");
    await finish("d");
    await finish("a");
    expect(await all).toEqual(["a!", "b!", "c!", "d!"]);
  });

  test("on none is done", async () => {
    const { started, work } = newWork();
    expect(await mapConcurrently([], 2, never, work)).toEqual([]);
    expect(started).toEqual([]);
  });

  test("fails with its first error, which aborts the others and starts no more", async () => {
    const { started, aborted, work, fail } = newWork();
    const error = new Error("b is bad");
    const all = mapConcurrently(["a", "b", "c"], 2, never, work);
    fail("b", error);
    await expect(all).rejects.toBe(error);
    expect(started).toEqual(["a", "b"]);
    expect([...aborted]).toEqual([["a", error]]);
  });

  test("fails when all that was running has ended", async () => {
    const slow = Promise.withResolvers<void>();
    let isOver = false;
    const work = (item: string): Promise<void> =>
      item === "bad" ? Promise.reject(new Error("bad")) : slow.promise;
    const all = mapConcurrently(["slow", "bad"], 2, never, work).finally(() => (isOver = true));
    await new Promise(setImmediate);
    expect(isOver).toBe(false);
    slow.resolve();
    await expect(all).rejects.toThrow("bad");
  });

  test("ends with the reason of its caller's signal", async () => {
    const { started, aborted, work } = newWork();
    const abort = new AbortController();
    const reason = new Error("the call is over");
    const all = mapConcurrently(["a", "b", "c"], 2, abort.signal, work);
    abort.abort(reason);
    await expect(all).rejects.toBe(reason);
    expect(started).toEqual(["a", "b"]);
    expect([...aborted.values()]).toEqual([reason, reason]);
    await expect(mapConcurrently(["d"], 2, abort.signal, work)).rejects.toBe(reason);
    expect(started).toEqual(["a", "b"]);
  });
});
