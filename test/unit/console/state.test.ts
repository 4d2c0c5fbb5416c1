/** How events change the state of the page, and that all it keeps is bounded. */
import { describe, expect, test } from "vitest";
import { appendText, emptyText, joinTexts } from "../../../console/state/bounded-text.ts";
import { reduce } from "../../../console/state/reduce.ts";
import {
  initialState,
  maxCalls,
  maxOutputLength,
  maxSamples,
  maxStatuses,
  type ConsoleEvent,
  type ConsoleState,
} from "../../../console/state/state.ts";
import {
  recordedCall,
  recordedSamples,
  recordedView,
  richDetail,
  runningCall,
} from "../../support/console/recorded-worker.ts";
import { fc, test as property } from "../../support/properties/property.ts";

function after(...events: readonly ConsoleEvent[]): ConsoleState {
  return events.reduce(reduce, initialState);
}

const nowMs = 1_700_000_000_000;

describe("the state", () => {
  test("has the worker, the calls and the samples of the stream", () => {
    const view = recordedView(nowMs);
    const calls = [recordedCall(2, nowMs), recordedCall(1, nowMs)];
    const samples = recordedSamples(nowMs);
    const state = after(
      { type: "state", view },
      { type: "calls", calls },
      { type: "samples", samples },
    );
    expect(state).toMatchObject({ view, calls, samples });
  });

  test("keeps nothing of a session that has ended", () => {
    const view = recordedView(nowMs);
    const ended: ConsoleEvent = { type: "session", session: "needed" };
    expect(after({ type: "state", view }, ended)).toEqual({ ...initialState, session: "needed" });
  });

  test("replaces a changed call and puts a new one at its place", () => {
    const calls = [recordedCall(4, nowMs), runningCall(2, nowMs)];
    const state = after(
      { type: "calls", calls },
      { type: "call", call: recordedCall(2, nowMs) },
      { type: "call", call: recordedCall(3, nowMs) },
      { type: "call", call: recordedCall(5, nowMs) },
    );
    expect(state.calls.map(({ number }) => number)).toEqual([5, 4, 3, 2]);
    expect(state.calls.at(-1)?.outcome).toBe("ok");
  });

  test("keeps a bounded number of calls, and of these those that run", () => {
    const state = after(
      { type: "call", call: runningCall(0, nowMs) },
      ...Array.from({ length: maxCalls + 5 }, (_, at) => ({
        type: "call" as const,
        call: recordedCall(at + 1, nowMs),
      })),
    );
    expect(state.calls).toHaveLength(maxCalls);
    expect(state.calls.at(-1)?.number).toBe(0);
    expect(state.calls[0]?.number).toBe(maxCalls + 5);
  });

  test("keeps the newest samples and learns the worker's clock", () => {
    const [sample] = recordedSamples(nowMs);
    const state = after(
      { type: "samples", samples: Array.from({ length: maxSamples }, () => sample!) },
      { type: "sample", sample: { ...sample!, atMs: nowMs + 250 }, nowMs },
    );
    expect(state.samples).toHaveLength(maxSamples);
    expect(state.samples.at(-1)?.atMs).toBe(nowMs + 250);
    expect(state.clockOffsetMs).toBe(250);
  });
});

describe("the opened call", () => {
  const running = runningCall(1, nowMs, { id: "a" });
  const detail = { ...richDetail(running), statuses: [], output: [] };
  const opened: ConsoleEvent = { type: "opened", id: "a" };

  test("collects its statuses and its output, and no other's", () => {
    const { opened: call } = after(
      opened,
      { type: "loaded", detail },
      { type: "status", status: { callId: "a", atMs: 1, text: "one" } },
      { type: "status", status: { callId: "b", atMs: 2, text: "other" } },
      { type: "output", piece: { callId: "a", stream: "stdout", text: "x" } },
      { type: "output", piece: { callId: "b", stream: "stdout", text: "y" } },
      { type: "output", piece: { callId: "a", stream: "stderr", text: "z" } },
    );
    expect(call?.statuses.map(({ text }) => text)).toEqual(["one"]);
    expect(call?.output).toEqual({
      stdout: { text: "x", isCut: false },
      stderr: { text: "z", isCut: false },
    });
  });

  test("has what came while it was loaded once", () => {
    const status = { callId: "a", atMs: 5, text: "same" };
    const { opened: call } = after(
      opened,
      { type: "output", piece: { callId: "a", stream: "stdout", text: "two\nthree\n" } },
      { type: "status", status },
      { type: "status", status: { ...status, atMs: 6 } },
      {
        type: "loaded",
        detail: {
          ...detail,
          statuses: [status],
          output: [{ stream: "stdout", text: "one\ntwo\n", isCut: false }],
        },
      },
    );
    expect(call?.output.stdout.text).toBe("one\ntwo\nthree\n");
    expect(call?.statuses.map(({ atMs }) => atMs)).toEqual([5, 6]);
  });

  test("does not go back to running by details that were read before its end", () => {
    const ended = recordedCall(1, nowMs, { id: "a" });
    const { opened: call } = after(
      opened,
      { type: "loaded", detail },
      { type: "call", call: ended },
      { type: "loaded", detail },
    );
    expect(call?.detail?.call.outcome).toBe("ok");
  });

  test("keeps bounded texts and statuses", () => {
    const text = `${"x".repeat(99)}\n`.repeat(10);
    const pieces = Array.from({ length: 100 }, () => ({
      type: "output" as const,
      piece: { callId: "a", stream: "stdout" as const, text },
    }));
    const statuses = Array.from({ length: maxStatuses + 1 }, (_, atMs) => ({
      type: "status" as const,
      status: { callId: "a", atMs, text: "s" },
    }));
    const { opened: call } = after(opened, ...pieces, ...statuses);
    expect(call?.output.stdout.text.length).toBeLessThanOrEqual(maxOutputLength);
    expect(call?.output.stdout.text.length).toBeGreaterThan(maxOutputLength - 200);
    expect(call?.output.stdout.isCut).toBe(true);
    expect(call?.statuses).toHaveLength(maxStatuses);
    expect(call?.statuses[0]?.atMs).toBe(1);
  });

  test("is another one without what the last one said", () => {
    const { opened: call } = after(
      opened,
      { type: "loaded", detail },
      { type: "opened", id: "b" },
      { type: "failed", id: "a", failure: "late" },
      { type: "loaded", detail },
    );
    expect(call).toMatchObject({ id: "b", detail: null, failure: null });
  });
});

describe("bounded text", () => {
  const maxLength = 40;

  test("begins with a whole line where it is cut", () => {
    const text = appendText(emptyText, "first\nsecond\nthird", 10);
    expect(text).toEqual({ text: "third", isCut: true });
  });

  property.prop([
    fc.string({ unit: fc.constantFrom("a", "b", "\n"), maxLength: 30 }),
    fc.nat(30),
    fc.nat(30),
  ])("joins the parts that two readers saw of it", (text, oneEnd, otherStart) => {
    const start = Math.min(otherStart, oneEnd, text.length);
    const stored = { text: text.slice(0, oneEnd), isCut: false };
    const live = { text: text.slice(start), isCut: false };
    const { text: joined } = joinTexts(stored, live, maxLength);
    // Where the text repeats itself, the overlap may be taken for longer than it was.
    expect(joined.length).toBeLessThanOrEqual(Math.max(text.length, live.text.length));
    expect(joined.endsWith(live.text) || joined.startsWith(stored.text)).toBe(true);
  });

  test("joins large texts that repeat themselves in time", () => {
    const stored = { text: "ab".repeat(32 * 1024), isCut: false };
    const live = { text: `${"ab".repeat(32 * 1024 - 1)}c`, isCut: false };
    expect(joinTexts(stored, live, maxOutputLength).text.length).toBeGreaterThan(
      maxOutputLength / 2,
    );
  });

  test("without an overlap is both", () => {
    const joined = joinTexts(
      { text: "abc", isCut: true },
      { text: "def", isCut: false },
      maxLength,
    );
    expect(joined).toEqual({ text: "abcdef", isCut: true });
  });

  test("that was whole from the beginning stays as it is", () => {
    const live = { text: "longer than what is stored", isCut: false };
    expect(joinTexts({ text: "stored", isCut: true }, live, maxLength)).toBe(live);
  });
});
