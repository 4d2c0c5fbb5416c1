import { expect, test } from "vitest";
import type { OutputPiece, StatusView } from "../../../worker/console/api.ts";
import { RecentCalls } from "../../../worker/console/calls/recent-calls.ts";
import { Samples } from "../../../worker/console/samples.ts";
import type { CallFollower } from "../../../worker/telemetry/call-follower.ts";

const clock = { ms: 0, nowMs: () => 1_000_000 + clock.ms, monotonicMs: () => clock.ms };

function start(options: { keepsOutput?: boolean; own?: string } = {}) {
  clock.ms = 0;
  const { keepsOutput = true, own } = options;
  const calls = new RecentCalls({ clock, keepsOutput, isOwn: (id) => id === own });
  let count = 0;
  const follow = (correlationId = `c${++count}`): CallFollower =>
    calls.follow({ deliveryCount: 1, queue: "default", correlationId, traceparent: undefined });
  return { calls, follow };
}

const end = { outcome: "ok", settlement: "accepted" };

test("200 ended calls are kept, and every one that runs", () => {
  const { calls, follow } = start();
  const running = follow("first");
  for (let count = 0; count < 250; count++) follow().end(end);
  expect(calls.views.length).toBe(201);
  expect(calls.views.at(-1)).toMatchObject({ correlationId: "first", outcome: null });
  running.end(end);
  expect(calls.views.filter(({ correlationId }) => correlationId === "first").length).toBe(1);
  expect(calls.views.length).toBe(200);
});

test("the thousand and first running call is not followed, unless it is the console's", () => {
  const { calls, follow } = start({ own: "mine" });
  const running = Array.from({ length: 1_001 }, () => follow());
  expect(calls.views.length).toBe(1_000);
  follow("mine");
  expect(calls.get("mine")?.view.isOwn).toBe(true);
  running[0]?.end(end);
  running[1]?.end(end);
  follow("last");
  expect(calls.views[0]?.correlationId).toBe("last");
});

test("phases follow each other in milliseconds since the receipt", () => {
  const { calls, follow } = start();
  const call = follow();
  clock.ms = 5;
  call.enter("queue");
  clock.ms = 12;
  call.end({ outcome: "requeued", settlement: "failed" });
  expect(calls.views[0]).toMatchObject({
    phases: [
      { step: "receive", startMs: 0, endMs: 5 },
      { step: "queue", startMs: 5, endMs: 12 },
    ],
    durationMs: 12,
    settlement: "failed",
  });
});

test("listeners get changes, statuses and output until they leave", () => {
  const { calls, follow } = start();
  const seen: (string | StatusView | OutputPiece)[] = [];
  const push = (each: string | StatusView | OutputPiece) => void seen.push(each);
  const leaving = calls.onChange({ call: push, status: push, output: push });
  const call = follow();
  call.resolved("weather");
  call.status?.("half way");
  const umlaut = Buffer.from("ü");
  call.printed?.("stdout", umlaut.subarray(0, 1));
  call.printed?.("stdout", umlaut.subarray(1));
  leaving[Symbol.dispose]();
  call.end(end);
  const callId = calls.views[0]?.id;
  expect(seen).toMatchObject([
    callId,
    { callId, text: "half way" },
    { callId, stream: "stdout", text: "ü" },
  ]);
});

test("the end of what a call prints is kept, and its newest statuses", () => {
  const { calls, follow } = start();
  const call = follow();
  call.printed?.("stdout", Buffer.from(`first${"x".repeat(65_536)}`));
  for (let count = 0; count < 150; count++) call.status?.(`status ${count}`);
  const kept = calls.get(calls.views[0]?.id ?? "");
  expect(kept?.output).toEqual([{ stream: "stdout", text: "x".repeat(65_536), isCut: true }]);
  expect(kept?.statuses.length).toBe(50);
  expect(kept?.statuses.at(-1)?.text).toBe("status 149");
});

test("the last fifty ended calls keep their statuses and output", () => {
  const { calls, follow } = start();
  for (let count = 0; count < 51; count++) {
    const call = follow();
    call.status?.("done");
    call.printed?.("stdout", Buffer.from("text"));
    call.end(end);
  }
  const kept = calls.views.map(({ id }) => calls.get(id)).filter((call) => call?.output.length);
  expect(kept.length).toBe(50);
  expect(calls.views.at(-1)?.correlationId).toBe("c1");
  expect(calls.get(calls.views.at(-1)?.id ?? "")).toMatchObject({ output: [], statuses: [] });
});

test("output of agents' calls is followed only where the worker keeps it", () => {
  const { calls, follow } = start({ keepsOutput: false, own: "mine" });
  expect(follow("other").printed).toBe(undefined);
  expect(follow("mine").printed).toBeDefined();
  expect(calls.get("mine")?.view).toMatchObject({ isOwn: true, id: "mine" });
});

test("a call is cancelled once it can be, and until its end", () => {
  const { calls, follow } = start();
  const follower = follow();
  const call = calls.get(calls.views[0]?.id ?? "");
  expect(call?.cancel()).toBe(false);
  let cancels = 0;
  follower.cancellable?.(() => void cancels++);
  expect(call?.cancel()).toBe(true);
  expect(call?.view.isCancelled).toBe(true);
  follower.enter("publish");
  expect([call?.cancel(), cancels]).toEqual([false, 1]);
  follower.end({ outcome: "ok", settlement: "accepted" });
  expect(call?.view).toMatchObject({ outcome: "ok", isCancelled: false });
});

test("a sample has the calls that ended since the last one", () => {
  const { calls, follow } = start();
  const gauges = { running: 1, waiting: 2, idle: 3, idleWanted: 4, idleMemoryBytes: 5 };
  using samples = new Samples(() => gauges, calls, clock);
  for (const [ms, outcome] of [
    [10, "ok"],
    [30, "SANDBOX_TIMEOUT"],
    [50, "ok"],
    [1, "duplicate"],
  ] as const) {
    const begunMs = clock.ms;
    const call = follow();
    clock.ms = begunMs + ms;
    call.end({ outcome, settlement: "accepted" });
  }
  samples.take();
  samples.take();
  expect(samples.all).toMatchObject([
    { calls: 3, errors: 1, p50Ms: 30, p99Ms: 50, seconds: 0.091, ...gauges },
    { calls: 0, errors: 0, p50Ms: null, p99Ms: null, seconds: 0 },
  ]);
});
