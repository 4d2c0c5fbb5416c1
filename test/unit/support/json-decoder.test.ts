/**
 * Decoding of JSON of any accepted size beside the event loop.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Worker } from "node:worker_threads";
import { beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { evaluated } from "../../support/threads/evaluated.ts";
import { decodeJson, offThreadAboveBytes } from "../../../worker/support/json/json-decoder.ts";
import { JsonError, type JsonLimits } from "../../../worker/support/json/json.ts";

const never = new AbortController().signal;

/** A document just above the threshold, or as much larger as is asked. */
function largeDocument(sizeBytes = offThreadAboveBytes + 1): Buffer {
  return Buffer.from(JSON.stringify({ text: "x".repeat(sizeBytes - 11) }));
}

/** Every thread that the present test has started. */
let threads: Worker[] = [];

beforeEach(() => {
  const collect = (thread: Worker): void => void threads.push(thread);
  threads = [];
  process.on("worker", collect);
  onTestFinished(() => void process.off("worker", collect));
});

/** Whether each thread has ended; Node takes a thread's number away then. */
function areOver(): boolean[] {
  return threads.map((thread) => thread.threadId === -1);
}

async function refusal(bytes: Uint8Array, limits?: JsonLimits): Promise<JsonError> {
  const error: unknown = await decodeJson(bytes, never, limits).then(
    () => new Error("accepted"),
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(JsonError);
  return error as JsonError;
}

describe("a small document", () => {
  test("is decoded without a thread", async () => {
    expect(await decodeJson(Buffer.from('{"a": [1, NaN]}'), never)).toEqual({ a: [1, null] });
    await nextTurn();
    expect(threads).toEqual([]);
  });

  test("of exactly the threshold is small", async () => {
    const document = largeDocument(offThreadAboveBytes);
    expect(document.byteLength).toBe(offThreadAboveBytes);
    await decodeJson(document, never);
    await nextTurn();
    expect(threads).toEqual([]);
  });
});

describe("a large document", () => {
  test("is decoded by a thread of its own, which is gone when the value is there", async () => {
    const value = await decodeJson(largeDocument(), never);
    expect(value).toEqual({ text: "x".repeat(offThreadAboveBytes - 10) });
    expect(areOver()).toEqual([true]);
  });

  test("does not hold up the event loop while it is parsed", { tags: "promise-O3" }, async () => {
    // Escapes are slow to parse, and what comes back is one short error.
    const document = Buffer.from(`["${"\\u0041".repeat(5_000_000)}" oops]`);
    let isOver = false;
    const decoding = refusal(document).finally(() => (isOver = true));
    let turns = 0;
    for (; !isOver; turns++) await nextTurn();
    expect((await decoding).reason).toBe("syntax");
    // One turn takes microseconds; a parser on this thread would leave a handful of them.
    expect(turns).toBeGreaterThan(500);
  });

  test("is read like a small one: members named __proto__, NaN, a view into a larger buffer", async () => {
    const text = `{"__proto__": {"a": 1}, "nan": NaN, "text": "${"é".repeat(600_000)}"}`;
    const frame = Buffer.from(`before ${text} after`);
    const bytes = frame.subarray("before ".length, frame.length - " after".length);
    const value = (await decodeJson(bytes, never)) as Record<string, unknown>;
    expect(Object.keys(value)).toEqual(["__proto__", "nan", "text"]);
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
    expect(value["nan"]).toBeNull();
    expect(value["text"]).toBe("é".repeat(600_000));
  });

  test("is left as it is: the caller's bytes are not taken away", async () => {
    const document = largeDocument();
    await decodeJson(document, never);
    expect(document.subarray(0, 9).toString()).toBe('{"text":"');
  });

  test.each([
    ["syntax", Buffer.concat([largeDocument(), Buffer.from("!")]), undefined],
    ["encoding", Buffer.concat([largeDocument(), Buffer.from([0xff])]), undefined],
    ["too-deep", Buffer.from("[".repeat(offThreadAboveBytes + 1)), undefined],
    ["too-many-values", Buffer.from(`[${"1,".repeat(offThreadAboveBytes)}1]`), undefined],
    ["too-many-values", largeDocument(), { depth: 5, values: 1 }],
  ] as const)("is refused with the error of the thread: %s", async (reason, bytes, limits) => {
    expect((await refusal(bytes, limits)).reason).toBe(reason);
    expect(areOver()).toEqual([true]);
  });

  test("is refused with a message that says where, and nothing of its content", async () => {
    const { message } = await refusal(Buffer.concat([largeDocument(), Buffer.from("!")]));
    expect(message).toBe(`not valid JSON at character ${offThreadAboveBytes + 1}`);
  });

  test("is abandoned with the signal's reason, and its thread ends", async () => {
    const giveUp = new AbortController();
    const reason = new Error("the agent has gone");
    const decoding = decodeJson(largeDocument(9_000_000), giveUp.signal);
    giveUp.abort(reason);
    await expect(decoding).rejects.toBe(reason);
    expect(areOver()).toEqual([true]);
  });

  test("is abandoned also in the middle of parsing", async () => {
    const giveUp = new AbortController();
    const document = Buffer.from(`["${"\\u0041".repeat(10_000_000)}"]`);
    const decoding = decodeJson(document, giveUp.signal);
    setTimeout(() => giveUp.abort(new Error("enough")), 60);
    await expect(decoding).rejects.toThrow("enough");
    expect(areOver()).toEqual([true]);
  });

  test("leaves nothing on the signal that outlives it", async () => {
    const signal = new AbortController().signal;
    const added = vi.spyOn(signal, "addEventListener");
    const removed = vi.spyOn(signal, "removeEventListener");
    await decodeJson(largeDocument(), signal);
    expect(added).toHaveBeenCalledTimes(1);
    expect(removed.mock.calls[0]?.slice(0, 2)).toEqual(added.mock.calls[0]?.slice(0, 2));
  });
});

describe("a signal that has aborted", () => {
  test.each([
    ["small", Buffer.from("{}")],
    ["large", largeDocument()],
  ])("stops the decoding of a %s document before it begins", async (_size, bytes) => {
    const reason = new Error("too late");
    await expect(decodeJson(bytes, AbortSignal.abort(reason))).rejects.toBe(reason);
    await nextTurn();
    expect(threads).toEqual([]);
  });
});

test("a large document is decoded whatever options the process has", async () => {
  const { stdout } = await evaluated(`
    import { decodeJson } from "${import.meta.resolve("../../../worker/support/json/json-decoder.ts")}";
    const bytes = Buffer.from(JSON.stringify("x".repeat(${offThreadAboveBytes})));
    const text = await decodeJson(bytes, new AbortController().signal);
    console.log(text.length);`);
  expect(stdout).toBe(`${offThreadAboveBytes}\n`);
});
