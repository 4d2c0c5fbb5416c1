/**
 * One delivery to its settlement: what is answered, what goes back to the broker, and in which
 * order.
 */
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Writable } from "node:stream";
import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { FileMarks } from "../../../worker/artifacts/filesystem/marks.ts";
import {
  BrokerError,
  type Delivery,
  type OutboundMessage,
  type PublishOutcome,
  type SessionEnd,
  type Settlement,
} from "../../../worker/broker/broker.ts";
import { Answers } from "../../../worker/invocation/answers.ts";
import { type Claims, guessedClaims } from "../../../worker/invocation/claims/claims.ts";
import { type HandlerParts, receiveDelivery } from "../../../worker/invocation/handler.ts";
import type { CallContext } from "../../../worker/invocation/call-context.ts";
import { Cancels } from "../../../worker/invocation/cancellation/cancels.ts";
import { Ledger, deduplicationKey } from "../../../worker/invocation/claims/ledger.ts";
import { TopicTools } from "../../../worker/invocation/read-request.ts";
import { CallMarks, maxKeptAnswerBytes } from "../../../worker/invocation/claims/call-marks.ts";
import { SharedClaims } from "../../../worker/invocation/claims/shared-claims.ts";
import type { ToolEntry, UnavailableTool } from "../../../worker/manifest/manifest.ts";
import { type ErrorCode, InvocationError } from "../../../worker/protocol/errors.ts";
import type { InvocationOutcome } from "../../../worker/protocol/invocation.ts";
import { invokeTopic } from "../../../worker/protocol/topics.ts";
import { systemClock } from "../../../worker/support/clock.ts";
import { Semaphore } from "../../../worker/support/semaphore.ts";
import { QueuedAuditLog } from "../../../worker/telemetry/audit/queued-log.ts";
import { CallCounts } from "../../../worker/telemetry/metrics/call-counts.ts";
import { createLogger } from "../../../worker/telemetry/logger.ts";
import { patience } from "../../support/patience.ts";
import { keptLog } from "../../support/workers/kept-log.ts";
import { tool } from "../manifest/fixtures.ts";

const namespace = "test";
const replyTo = "reply/here";
const statusTo = "status/here";
const neverAborted = new AbortController().signal;

const request = Buffer.from(
  JSON.stringify({
    id: "7",
    method: "sam_remote_tool/invoke",
    params: { task_id: "7", tool_name: "echo", app_name: "a", user_id: "u", session_id: "s" },
  }),
);

const success = {
  kind: "success",
  toolResult: { said: "hi" },
  createdArtifacts: [],
  executionTimeMs: 1,
  started: true,
  idempotent: true,
} as const;

/** A broker to which results are too large. */
function refuseResults({ payload }: OutboundMessage): Promise<PublishOutcome> {
  return Buffer.from(payload).includes('"result"')
    ? Promise.reject(new BrokerError("too large", { transient: false }))
    : Promise.resolve("confirmed");
}

function cancelled(started: boolean, idempotent: boolean): InvocationOutcome {
  return { kind: "cancelled", reason: "shutdown", started, idempotent, executionTimeMs: 1 };
}

function failure(code: ErrorCode, started: boolean): InvocationOutcome {
  const error = new InvocationError(code, "no");
  return { kind: "error", error, started, idempotent: true, executionTimeMs: 1 };
}

interface Setting {
  readonly outcome: InvocationOutcome;
  readonly redelivers: boolean;
  readonly maxDeliveries: number | undefined;
  readonly closed: Promise<SessionEnd>;
  readonly unavailable: ReadonlyMap<string, UnavailableTool>;
  /** Statuses of the tool, all at once. */
  readonly statuses: readonly string[];
  readonly properties: Readonly<Record<string, string>>;
  readonly payload: Uint8Array;
  readonly claims: Claims;
  readonly cancels: Cancels;
  /** Comes before the end of each run. */
  readonly whileRunning: () => Promise<void>;
  publish(message: OutboundMessage, signal: AbortSignal): Promise<PublishOutcome>;
  settle(outcome: Settlement): Promise<void>;
}

/** A worker's half of calls. */
function newHandler(changes: Partial<Setting>) {
  /** What the broker was told, in order. */
  const told: string[] = [];
  const logged: string[] = [];
  /** What the invoker was told of each run. */
  const runs: CallContext[] = [];
  /** The outcome of each delivery in the audit log. */
  const audited: unknown[] = [];
  const calls = new CallCounts(() => systemClock.monotonicMs());
  calls.serve(["echo"]);
  const setting: Setting = {
    outcome: success,
    redelivers: true,
    maxDeliveries: undefined,
    closed: new Promise(() => {}),
    unavailable: new Map(),
    statuses: [],
    properties: { replyTo, statusTo },
    payload: request,
    claims: guessedClaims,
    cancels: new Cancels(systemClock, keptLog()),
    whileRunning: () => Promise.resolve(),
    publish: () => Promise.resolve("confirmed"),
    settle: () => Promise.resolve(),
    ...changes,
  };
  const log = createLogger(
    "debug",
    new Writable({
      write: (chunk: Buffer, _encoding, done) => (logged.push(chunk.toString()), done()),
    }),
  );
  const session = {
    redelivers: setting.redelivers,
    closed: setting.closed,
    async publish(message: OutboundMessage, signal: AbortSignal) {
      const outcome = await setting.publish(message, signal);
      told.push(`${message.topic} ${Buffer.from(message.payload).toString()}`);
      return outcome;
    },
  };
  // Nobody waits long for a broker that does not confirm.
  const clock = { ...systemClock, sleep: () => nextTurn() };
  const parts: HandlerParts = {
    namespace,
    session,
    topicTools: new TopicTools(namespace, log),
    resolve: (name) => (setting.unavailable.has(name) ? undefined : tool(name)),
    unavailable: (name) => setting.unavailable.get(name),
    ledger: new Ledger(systemClock),
    answers: new Answers(session, log),
    claims: setting.claims,
    cancels: setting.cancels,
    audit: auditOf((line) => {
      if (line["event"] === "call.end") audited.push(line["outcome"]);
    }),
    maxRuns: 100,
    follow: () => calls.follow(),
    invoker: {
      async invoke(_invocation, context) {
        runs.push(context);
        for (const status of setting.statuses) context.onStatus(status);
        await setting.whileRunning();
        return setting.outcome;
      },
    },
    largeRequests: new Semaphore({ capacity: 1, maxWaiting: 0 }),
    clock,
    log,
  };
  /** Handles a delivery; `name` is what `told` calls its settlement besides the outcome. */
  const deliver = (changes: Partial<Delivery> = {}, name = "") => {
    const delivery: Delivery = {
      topic: invokeTopic(namespace, "echo"),
      payload: setting.payload,
      redelivered: false,
      deliveryCount: 1,
      maxDeliveries: setting.maxDeliveries,
      properties: setting.properties,
      async settle(outcome) {
        told.push(`${name}${outcome}`);
        await setting.settle(outcome);
      },
      ...changes,
    };
    const signals = { wait: neverAborted, run: neverAborted, publish: neverAborted };
    return receiveDelivery(parts, delivery, signals).handle();
  };
  return { deliver, told, runs, audited, calls, logged: () => logged.join("") };
}

/** An audit log that is written to a test. */
function auditOf(write: (line: Readonly<Record<string, unknown>>) => void): QueuedAuditLog {
  const sink = {
    append: async (line: Buffer) => write(JSON.parse(line.toString()) as Record<string, unknown>),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
  const parts = { workerId: "w", isRequired: false, clock: systemClock, log: keptLog() };
  return new QueuedAuditLog({ ...parts, sink });
}

/** Handles one request; what the broker was told, in order, and what was logged. */
async function handle(changes: Partial<Setting>, delivery: Partial<Delivery> = {}) {
  const { deliver, told, runs, audited, logged } = newHandler(changes);
  const settlement = await deliver(delivery);
  return { told, runs, audited, logged: logged(), settlement };
}

const answerOf = (line: string | undefined): unknown =>
  JSON.parse(line!.replace(`${replyTo} `, ""));

describe("the trace of a caller", () => {
  const contextOf = (digit: string) => `00-${digit.repeat(32)}-${digit.repeat(16)}-01`;

  test("is in the answer to each delivery, and in its lines of the log", async () => {
    const answered: unknown[] = [];
    const { deliver, logged } = newHandler({
      publish: ({ properties }) => {
        answered.push(properties);
        return Promise.resolve("confirmed");
      },
    });
    const traces = [
      { traceparent: contextOf("a"), tracestate: "v=1" },
      { traceparent: contextOf("b") },
      {},
    ];
    for (const trace of traces) await deliver({ properties: { replyTo, ...trace } });
    expect(answered).toEqual(traces);
    const lines = logged().trim().split("\n");
    const facts = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    const again = { event: "call.redelivered_after_answer" };
    expect(facts).toMatchObject([
      { event: "call.received", traceId: "a".repeat(32), id: "7" },
      { event: "call.finished", traceId: "a".repeat(32), id: "7" },
      { ...again, traceId: "b".repeat(32) },
      again,
    ]);
    expect(facts.at(-1)).not.toHaveProperty("traceId");
  });
});

test("an answer that has no receiver is logged with its request and the caller's trace", async () => {
  const traceparent = `00-${"a".repeat(32)}-${"b".repeat(16)}-01`;
  const { logged } = await handle({
    properties: { replyTo, traceparent },
    publish: () => Promise.resolve("unroutable"),
  });
  const line = logged.split("\n").find((text) => text.includes("answer.unroutable")) ?? "";
  expect(JSON.parse(line)).toMatchObject({ traceId: "a".repeat(32), id: "7" });
});

describe("a call that the worker gives up goes back to the broker, unanswered,", () => {
  test.for([
    ["before its tool began", cancelled(false, true)],
    ["when its tool had begun and may run again", cancelled(true, true)],
  ] as const)("%s", async ([, outcome]) => {
    const { told, settlement, logged } = await handle({ outcome });
    expect(told).toEqual(["failed"]);
    expect(settlement).toBe("failed");
    expect(logged).toContain("call.cancelled");
  });
});

describe("a call that the worker gives up is answered and then accepted", () => {
  test("when its tool had begun and must not run again, with the reason", async () => {
    const { told, settlement } = await handle({ outcome: cancelled(true, false) });
    expect(answerOf(told[0])).toMatchObject({
      id: "7",
      error: {
        code: "SANDBOX_FAILED",
        message:
          "The tool was stopped because the worker is shutting down. Its manifest entry forbids to run the call again",
      },
    });
    expect(told.slice(1)).toEqual(["accepted"]);
    expect(settlement).toBe("accepted");
  });

  test("with the outputs that could not be deleted", async () => {
    const remainingArtifacts = [{ filename: "a.csv", version: 3 }];
    const outcome = { ...cancelled(true, false), remainingArtifacts };
    const { told } = await handle({ outcome });
    expect(answerOf(told[0])).toMatchObject({
      error: {
        code: "SANDBOX_FAILED",
        message: expect.stringMatching(
          /forbids to run the call again\. These outputs could not be deleted: "a.csv" version 3$/,
        ) as unknown,
        data: { remaining_artifacts: remainingArtifacts },
      },
    });
  });

  test.for([
    [
      "TOOL_NOT_AVAILABLE, which agents try again,",
      "before its tool began",
      cancelled(false, true),
      "TOOL_NOT_AVAILABLE",
      "The worker is shutting down",
    ],
    [
      "SANDBOX_FAILED",
      "once its tool had begun",
      cancelled(true, true),
      "SANDBOX_FAILED",
      "The tool was stopped because the worker is shutting down",
    ],
  ] as const)(
    "with %s %s, by a broker that redelivers nothing",
    async ([, , outcome, code, message]) => {
      const { told, logged } = await handle({ outcome, redelivers: false });
      expect(answerOf(told[0])).toMatchObject({ error: { code, message } });
      expect(told.slice(1)).toEqual(["accepted"]);
      expect(logged).toContain(`"code":"${code}"`);
    },
  );

  test("with TOOL_NOT_AVAILABLE before its tool began, when it must not run twice: the next worker could not know", async () => {
    const { told } = await handle({ outcome: cancelled(false, false) });
    expect(answerOf(told[0])).toMatchObject({ error: { code: "TOOL_NOT_AVAILABLE" } });
    expect(told.slice(1)).toEqual(["accepted"]);
  });
});

describe("a call that its caller cancels", () => {
  const outcome = {
    kind: "cancelled",
    reason: "caller",
    started: true,
    idempotent: false,
    executionTimeMs: 1,
  } as const;
  const caller = { replyTo, clientId: "a", user: undefined };
  const properties = { replyTo, clientId: "a" };

  /** Cancels that one of the caller has come to already. */
  function received(): Cancels {
    const cancels = new Cancels(systemClock, keptLog());
    cancels.receive("here", caller);
    return cancels;
  }

  test("is answered once and accepted, also when it must not run twice, and so when it comes again", async () => {
    const { deliver, told, logged, audited } = newHandler({ outcome, properties });
    expect(await deliver()).toBe("accepted");
    expect(answerOf(told[0])).toMatchObject({
      id: "7",
      error: {
        code: "CANCELLED",
        message: "The caller cancelled the call, and the tool was stopped",
      },
    });
    expect(await deliver({ redelivered: true, deliveryCount: 2 })).toBe("accepted");
    expect(told.slice(1)).toEqual(["accepted", "accepted"]);
    expect(audited).toEqual(["CANCELLED", "duplicate"]);
    expect(logged()).toContain('"event":"call.cancelled"');
    expect(logged()).not.toContain('"event":"call.failed"');
  });

  test("names the outputs that could not be deleted, and its sandbox", async () => {
    const remainingArtifacts = [{ filename: "a.csv", version: 3 }];
    const { told } = await handle({ outcome: { ...outcome, remainingArtifacts } });
    expect(answerOf(told[0])).toMatchObject({
      error: {
        message: expect.stringContaining('"a.csv" version 3') as unknown,
        data: { remaining_artifacts: remainingArtifacts },
      },
    });
  });

  test("tells its run of it, and the run decides", async () => {
    const cancels = new Cancels(systemClock, keptLog());
    const whileRunning = async () => cancels.receive("here", caller);
    const { runs, told } = await handle({ cancels, properties, whileRunning });
    expect(runs[0]?.cancelSignal?.aborted).toBe(true);
    expect(answerOf(told[0])).toHaveProperty("result");
  });

  test("before it comes does not run, and is not requeued where its tool is not served", async () => {
    const entry = tool("echo");
    const unavailable = new Map([["echo", { reason: "", publicReason: "", entry }]]);
    for (const changes of [{}, { unavailable }]) {
      const cancels = received();
      const { runs, told, audited } = await handle({ cancels, properties, ...changes });
      expect(runs).toEqual([]);
      expect(answerOf(told[0])).toMatchObject({
        id: "7",
        error: {
          code: "CANCELLED",
          message: "The caller cancelled the call before the tool started",
        },
      });
      expect(told.slice(1)).toEqual(["accepted"]);
      expect(audited).toEqual(["CANCELLED"]);
    }
  });

  test("before it comes again does not deny that it may have run", async () => {
    const again = { redelivered: true, deliveryCount: 2 };
    const { told, runs } = await handle({ cancels: received(), properties }, again);
    expect(runs).toEqual([]);
    expect(answerOf(told[0])).toMatchObject({
      error: { message: expect.stringContaining("An earlier delivery of the call may") as unknown },
    });
  });

  test("after its answer gets nothing more, and keeps its answer when it comes again", async () => {
    const cancels = new Cancels(systemClock, keptLog());
    const publish = (): Promise<PublishOutcome> => Promise.resolve("unroutable");
    const { deliver, told } = newHandler({ cancels, properties, publish });
    await deliver();
    cancels.receive("here", caller);
    expect(told.slice(1)).toEqual(["accepted"]);
    await deliver({ redelivered: true, deliveryCount: 2 });
    expect(told).toEqual([told[0], "accepted", told[0], "accepted"]);
    expect(answerOf(told[0])).toHaveProperty("result");
  });

  test("of another caller runs", async () => {
    const { runs } = await handle({ cancels: received(), properties: { replyTo: "other/here" } });
    expect(runs).toHaveLength(1);
    expect(runs[0]?.cancelSignal?.aborted).toBe(false);
  });
});

describe("a call of a tool that this worker cannot serve", () => {
  const refusing = (fields: Partial<ToolEntry> = {}) =>
    new Map([
      [
        "echo",
        {
          reason: "/srv/models is not there",
          publicReason: "one of its mounts is not there",
          entry: tool("echo", fields),
        },
      ],
    ]);
  const message = "Tool 'echo' is not available on this worker: one of its mounts is not there";
  const again = { redelivered: true, deliveryCount: 2 };

  test("is answered at once with the reason that may be published, where nothing redelivers", async () => {
    const { told, runs } = await handle({ unavailable: refusing(), redelivers: false });
    expect(answerOf(told[0])).toMatchObject({
      id: "7",
      error: { code: "TOOL_NOT_AVAILABLE", message },
    });
    expect(told[0]).not.toContain("/srv");
    expect(told.slice(1)).toEqual(["accepted"]);
    expect(runs).toHaveLength(0);
  });

  test("goes back once, for a worker that serves it, and is answered when it comes again", async () => {
    const { deliver, told, runs } = newHandler({ unavailable: refusing() });
    expect(await deliver()).toBe("failed");
    expect(told).toEqual(["failed"]);
    expect(await deliver(again)).toBe("accepted");
    expect(answerOf(told[1])).toMatchObject({ error: { code: "TOOL_NOT_AVAILABLE", message } });
    expect(runs).toHaveLength(0);
  });

  test("does not go back where that would keep it from running elsewhere", async () => {
    const unavailable = refusing({ idempotent: false });
    const first = await handle({ unavailable });
    expect(answerOf(first.told[0])).toMatchObject({ error: { code: "TOOL_NOT_AVAILABLE" } });
    const second = await handle({ unavailable }, again);
    expect(answerOf(second.told[0])).toMatchObject({ error: { code: "NOT_REPEATED" } });
    const last = await handle({ unavailable: refusing(), maxDeliveries: 3 });
    expect(answerOf(last.told[0])).toMatchObject({ error: { code: "TOOL_NOT_AVAILABLE" } });
  });

  test("runs as soon as the tool is served, when it is tried again", async () => {
    const unavailable = new Map(refusing());
    const { deliver, told, runs } = newHandler({ unavailable, redelivers: false });
    await deliver();
    unavailable.clear();
    await deliver();
    expect(runs).toHaveLength(1);
    expect(answerOf(told[2])).toHaveProperty("result");
  });
});

describe("a delivery is settled", () => {
  test("as accepted after its answer is confirmed", async () => {
    const { told } = await handle({});
    expect(answerOf(told[0])).toMatchObject({ result: { tool_result: { said: "hi" } } });
    expect(told.slice(1)).toEqual(["accepted"]);
  });

  test("as failed when its answer cannot be published", async () => {
    const { told, logged } = await handle({
      publish: () => Promise.reject(new Error("the broker is gone")),
    });
    expect(told).toEqual(["failed"]);
    expect(logged).toContain("answer.publish_failed");
  });

  test("as accepted when its answer reached nobody", async () => {
    const { told } = await handle({ publish: () => Promise.resolve("unroutable") });
    expect(told.slice(1)).toEqual(["accepted"]);
  });

  test("not at all when the session has ended", async () => {
    const { told, settlement } = await handle({
      closed: Promise.resolve({ reason: "lost" }),
      publish: () => Promise.reject(new BrokerError("ended", { transient: false })),
    });
    expect(told).toEqual([]);
    expect(settlement).toBeUndefined();
  });

  test("as rejected when nobody can be answered", async () => {
    expect((await handle({ properties: {} })).told).toEqual(["rejected"]);
  });

  test("and when that fails, the log says so and the answer is out all the same", async () => {
    const { told, logged } = await handle({
      settle: () => Promise.reject(new Error("the channel is closed")),
    });
    expect(told).toHaveLength(2);
    expect(logged).toMatch(/"event":"delivery.settle_failed".*"outcome":"accepted"/);
    expect(logged).toContain("the channel is closed");
  });

  test("and when that fails, metrics do not say that the broker was told", async () => {
    const { deliver, calls } = newHandler({
      settle: () => Promise.reject(new Error("the channel is closed")),
    });
    expect(await deliver()).toBeUndefined();
    expect(await deliver({ properties: {} })).toBeUndefined();
    const told = calls.samples.str_deliveries_settled_total();
    expect(await told).toContainEqual({ labels: { settlement: "accepted" }, value: 0 });
    expect(await told).toContainEqual({ labels: { settlement: "rejected" }, value: 0 });
    expect(await told).toContainEqual({ labels: { settlement: "none" }, value: 2 });
  });
});

test("a delivery whose handling throws is not counted as running", async () => {
  const claims: Claims = {
    ...guessedClaims,
    open: (...call) => ({
      ...guessedClaims.open(...call),
      isAnswered: () => Promise.reject(new Error("a defect")),
    }),
  };
  const { deliver, calls } = newHandler({ claims });
  await expect(deliver()).rejects.toThrow("a defect");
  expect(await calls.samples.str_deliveries_running()).toMatchObject([{ value: 0 }]);
  expect(await calls.samples.str_calls_total()).toMatchObject([
    { labels: { outcome: "unanswered" }, value: 1 },
  ]);
});

describe("a call that is delivered again", () => {
  const again = { redelivered: true, deliveryCount: 2 };

  test("while it runs does not run again, and is settled with the first delivery, after the answer", async () => {
    const running = Promise.withResolvers<void>();
    const { deliver, told, runs, logged } = newHandler({ whileRunning: () => running.promise });
    const first = deliver({}, "first ");
    await vi.waitFor(() => expect(runs).toHaveLength(1), patience);
    expect(await deliver(again, "second ")).toBeUndefined();
    expect(told).toEqual([]);
    running.resolve();
    expect(await first).toBe("accepted");
    expect(answerOf(told[0])).toHaveProperty("result");
    expect(told.slice(1)).toEqual(["first accepted", "second accepted"]);
    expect(runs).toHaveLength(1);
    expect(logged()).toContain("call.redelivered_while_running");
  });

  test("through another subscription, which is no redelivery, runs once as well", async () => {
    const running = Promise.withResolvers<void>();
    const { deliver, told, runs } = newHandler({ whileRunning: () => running.promise });
    const both = [deliver(), deliver()];
    running.resolve();
    expect(await Promise.all(both)).toEqual(["accepted", undefined]);
    expect(runs).toHaveLength(1);
    expect(told.slice(1)).toEqual(["accepted", "accepted"]);
    expect(await deliver()).toBe("accepted");
    expect(runs).toHaveLength(1);
  });

  test("while its answer is on its way is settled with it", async () => {
    const confirmed = Promise.withResolvers<PublishOutcome>();
    const { deliver, told, runs } = newHandler({ publish: () => confirmed.promise });
    const first = deliver({}, "first ");
    await vi.waitFor(() => expect(runs).toHaveLength(1), patience);
    await nextTurn();
    expect(await deliver(again, "second ")).toBeUndefined();
    confirmed.resolve("confirmed");
    await first;
    expect(told).toEqual([expect.any(String), "first accepted", "second accepted"]);
  });

  test("after its answer is settled, and neither runs nor is answered twice", async () => {
    const { deliver, told, runs, logged } = newHandler({});
    await deliver();
    expect(await deliver(again)).toBe("accepted");
    expect(told).toEqual([expect.stringContaining("result"), "accepted", "accepted"]);
    expect(runs).toHaveLength(1);
    expect(logged()).toContain("call.redelivered_after_answer");
  });

  test.each([
    [
      "its sender sent it again",
      { ...again, properties: { replyTo, resent: "true" } },
      "confirmed",
    ],
    ["nobody was there for the answer", again, "unroutable"],
  ] as const)("after its answer is answered the same when %s", async (_, delivery, outcome) => {
    const { deliver, told, runs } = newHandler({ publish: () => Promise.resolve(outcome) });
    await deliver();
    expect(await deliver(delivery)).toBe("accepted");
    expect(told).toEqual([told[0], "accepted", told[0], "accepted"]);
    expect(runs).toHaveLength(1);
  });

  test("after its answer could not be published gets it then, and does not run", async () => {
    const overloaded = new BrokerError("too much waits already", { transient: true });
    let says = (): Promise<PublishOutcome> => Promise.reject(overloaded);
    const { deliver, told, runs } = newHandler({ publish: () => says() });
    expect(await deliver()).toBe("failed");
    says = () => Promise.resolve("confirmed");
    expect(await deliver(again)).toBe("accepted");
    expect(answerOf(told[1])).toHaveProperty("result");
    expect(runs).toHaveLength(1);
  });

  test("after its answer was unroutable gets it once more, and no third time", async () => {
    let outcome: PublishOutcome = "unroutable";
    const { deliver, told } = newHandler({ publish: () => Promise.resolve(outcome) });
    await deliver();
    outcome = "confirmed";
    await deliver(again);
    await deliver(again);
    expect(told).toEqual([told[0], "accepted", told[0], "accepted", "accepted"]);
  });

  test("gets again what went out in the place of an answer that the broker never takes", async () => {
    const artifact = { mimeType: "text/csv", sizeBytes: 1, description: undefined };
    const createdArtifacts = [{ filename: "a.csv", version: 3, ...artifact }];
    const outcome = { ...success, createdArtifacts };
    const { deliver, told, runs } = newHandler({ publish: refuseResults, outcome });
    await deliver();
    await deliver({});
    expect(answerOf(told[0])).toMatchObject({
      error: {
        code: "RESOURCE_EXHAUSTED",
        data: { remaining_artifacts: [{ filename: "a.csv", version: 3 }] },
      },
    });
    expect(told).toEqual([told[0], "accepted", told[0], "accepted"]);
    expect(runs).toHaveLength(1);
  });

  test("after it was given back runs, and is none of the former delivery's", async () => {
    const { deliver, told, runs } = newHandler({ outcome: cancelled(true, true) });
    await deliver({}, "first ");
    await deliver(again, "second ");
    expect(told).toEqual(["first failed", "second failed"]);
    expect(runs).toHaveLength(2);
  });

  test.for([
    ["TOOL_NOT_AVAILABLE before it began, which agents try again,", "TOOL_NOT_AVAILABLE", false, 2],
    ["RESOURCE_EXHAUSTED before it began", "RESOURCE_EXHAUSTED", false, 2],
    ["RESOURCE_EXHAUSTED by what it returned", "RESOURCE_EXHAUSTED", true, 1],
    ["an error that is final", "ARTIFACT_ERROR", false, 1],
  ] as const)("after %s runs %s", async ([, code, started, expected]) => {
    const { deliver, runs } = newHandler({ outcome: failure(code, started) });
    await deliver();
    await deliver();
    expect(runs).toHaveLength(expected);
  });

  test("is run with the word that it may have begun elsewhere, as far as nothing is known of it here", async () => {
    const { runs } = await handle({}, again);
    expect(runs).toMatchObject([{ claimed: { mayHaveStarted: true } }]);
    expect((await handle({})).runs).toMatchObject([{ claimed: { mayHaveStarted: false } }]);
  });
});

describe("a call that the broker hands out for the last time but one", () => {
  const last = { redelivered: true, deliveryCount: 5 };

  test("is answered POISONED and rejected, without being run", { tags: "promise-B6" }, async () => {
    const { told, runs, settlement } = await handle({ maxDeliveries: 6 }, last);
    expect(answerOf(told[0])).toMatchObject({
      id: "7",
      error: { code: "POISONED", message: expect.stringContaining("delivered 5 times") },
    });
    expect(told.slice(1)).toEqual(["rejected"]);
    expect(settlement).toBe("rejected");
    expect(runs).toEqual([]);
  });

  test("is so also when it cannot be read", async () => {
    const payload = Buffer.from("{");
    const { told } = await handle({ maxDeliveries: 6, payload }, last);
    expect(answerOf(told[0])).toMatchObject({ id: "unknown", error: { code: "POISONED" } });
    expect(told.slice(1)).toEqual(["rejected"]);
  });

  test("is left to one more worker when the answer cannot be published", async () => {
    const publish = () => Promise.reject(new BrokerError("gone", { transient: true }));
    expect((await handle({ maxDeliveries: 6, publish }, last)).told).toEqual(["failed"]);
  });

  test("is rejected when it names nobody who could be answered", async () => {
    expect((await handle({ maxDeliveries: 6, properties: {} }, last)).told).toEqual(["rejected"]);
  });

  test("runs when an operator has put it back into its queue", async () => {
    const { deliver, runs } = newHandler({ maxDeliveries: 6 });
    await deliver(last);
    await deliver();
    expect(runs).toHaveLength(1);
  });

  test("is settled when it was answered here, and is no poison", async () => {
    const { deliver, told } = newHandler({ maxDeliveries: 6 });
    await deliver();
    expect(await deliver(last)).toBe("accepted");
    expect(told).toEqual([expect.stringContaining("result"), "accepted", "accepted"]);
  });

  test("is any other call on a broker without a limit, and one delivery before", async () => {
    expect((await handle({}, last)).runs).toHaveLength(1);
    expect((await handle({ maxDeliveries: 7 }, last)).runs).toHaveLength(1);
  });
});

describe("statuses", () => {
  /** A broker that does not confirm statuses until the call is over. */
  function slowBroker() {
    const held: AbortSignal[] = [];
    return {
      held,
      publish: ({ topic }: OutboundMessage, signal: AbortSignal): Promise<PublishOutcome> => {
        if (topic === replyTo) return Promise.resolve("confirmed");
        held.push(signal);
        return new Promise((_, reject) => {
          signal.addEventListener("abort", () => reject(signal.reason as Error));
        });
      },
    };
  }

  test.for([
    ["its answer", success],
    ["it was given back", cancelled(true, true)],
  ] as const)("of a call are out before %s", async ([, outcome]) => {
    const { told } = await handle({ outcome, statuses: ["one", "two"] });
    const texts = told.map((line) => /"status_text":"(\w+)"/.exec(line)?.[1] ?? "end");
    expect(texts.slice(0, 3)).toEqual(["one", "two", "end"]);
  });

  test.for([
    ["its answer", success],
    ["it was given back", cancelled(true, true)],
  ] as const)(
    "that the broker is slow with are called off before %s, and none comes after",
    async ([, outcome]) => {
      const { held, publish } = slowBroker();
      const calledOff: boolean[] = [];
      const settle = (): Promise<void> => {
        calledOff.push(...held.map(({ aborted }) => aborted));
        return Promise.resolve();
      };
      const { told } = await handle({ outcome, statuses: ["one", "two"], publish, settle });
      expect(calledOff).toEqual([true]);
      expect(told.join()).not.toContain(statusTo);
    },
  );
});

describe("a call that another worker answered", () => {
  const again = { redelivered: true, deliveryCount: 2 };
  const log = createLogger("silent", new Writable());

  /** Two workers that share a store, in which nobody waits. */
  async function newClaims() {
    const base = await mkdtemp(join(tmpdir(), "str-handler-"));
    onTestFinished(() => rm(base, { recursive: true, force: true }));
    const clock = { ...systemClock, sleep: () => nextTurn() };
    const marks = new FileMarks(base);
    const [one, other] = [1, 2].map(() => {
      const claims = new SharedClaims({ marks, clock, log });
      onTestFinished(() => claims[Symbol.asyncDispose]());
      return claims;
    }) as [SharedClaims, SharedClaims];
    const answered = async () =>
      (await readdir(base, { recursive: true })).filter((name) => name.endsWith(".answered"));
    return { one, other, marks, answered };
  }

  test("and that comes again is settled without a second answer, and does not run", async () => {
    const { one, other } = await newClaims();
    expect((await handle({ claims: one }, again)).told).toHaveLength(2);
    const { told, runs, logged, audited } = await handle({ claims: other }, again);
    expect(told).toEqual(["accepted"]);
    expect(runs).toEqual([]);
    expect(audited).toEqual(["duplicate"]);
    expect(logged).toContain("call.answered_elsewhere");
  });

  test("gets that answer when its sender sent it again", async () => {
    const { one, other } = await newClaims();
    const properties = { replyTo, statusTo, resent: "true" };
    const first = await handle({ claims: one, properties });
    const { told, runs, audited } = await handle({ claims: other, properties });
    expect(told).toEqual(first.told);
    expect(runs).toEqual([]);
    expect(audited).toEqual(["duplicate"]);
  });

  test("gets NOT_REPEATED when its sender sent it again and the answer is too large to keep", async () => {
    const { one, other } = await newClaims();
    const properties = { replyTo, statusTo, resent: "true" };
    const outcome = { ...success, toolResult: { said: "x".repeat(maxKeptAnswerBytes) } };
    await handle({ claims: one, properties, outcome });
    const { told, runs } = await handle({ claims: other, properties });
    expect(answerOf(told[0])).toMatchObject({ id: "7", error: { code: "NOT_REPEATED" } });
    expect(told[1]).toBe("accepted");
    expect(runs).toEqual([]);
  });

  test("and lost the broker is answered with its answer, and neither runs nor fails", async () => {
    const { other, marks, answered } = await newClaims();
    const key = deduplicationKey(
      { topic: invokeTopic(namespace, "echo"), payload: request },
      replyTo,
    );
    const call = Buffer.from(key, "base64").toString("hex");
    const kept = new CallMarks(call, (operation) => operation(marks, neverAborted));
    await kept.keepUnpublished(Buffer.from('{"kept":true}'));
    const nearlyLost = { ...again, deliveryCount: 5 };
    const { told, runs, logged } = await handle({ claims: other, maxDeliveries: 6 }, nearlyLost);
    expect(told).toEqual([`${replyTo} {"kept":true}`, "accepted"]);
    expect(runs).toEqual([]);
    expect(logged).toContain("call.kept_answer_sent");
    expect(await answered()).toHaveLength(1);
  });

  test("with POISONED counts as not answered: an operator may put it back", async () => {
    const { one, answered } = await newClaims();
    const last = { redelivered: true, deliveryCount: 5 };
    const { told } = await handle({ claims: one, maxDeliveries: 6 }, last);
    expect(answerOf(told[0])).toMatchObject({ error: { code: "POISONED" } });
    expect(await answered()).toEqual([]);
  });
});

describe("the audit log has one end of a delivery", () => {
  const again = { redelivered: true, deliveryCount: 2 };
  const last = { redelivered: true, deliveryCount: 5 };

  test.for([
    ["that succeeds", {}, {}, "ok"],
    ["that fails", { outcome: failure("TOOL_ERROR", true) }, {}, "TOOL_ERROR"],
    [
      "whose time is over",
      { outcome: { ...success, kind: "timeout" } as const },
      {},
      "SANDBOX_TIMEOUT",
    ],
    ["that is no request", { payload: Buffer.from("{") }, {}, "INVALID_REQUEST"],
    ["without a reply topic", { properties: {} }, {}, "rejected"],
    ["that is poison", { maxDeliveries: 6 }, last, "POISONED"],
    ["that is requeued", { outcome: cancelled(true, true) }, {}, "requeued"],
    ["that is stopped for good", { outcome: cancelled(true, false) }, {}, "SANDBOX_FAILED"],
    [
      "whose answer the broker does not take for now",
      { publish: () => Promise.reject(new BrokerError("too much waits", { transient: true })) },
      {},
      "unanswered",
    ],
    [
      "whose answer the broker never takes, nor a shorter one",
      { publish: () => Promise.reject(new BrokerError("too large", { transient: false })) },
      {},
      "unanswered",
    ],
    [
      "whose answer the broker never takes, but a shorter one",
      { publish: refuseResults },
      {},
      "RESOURCE_EXHAUSTED",
    ],
    [
      "whose broker is gone",
      {
        publish: () => Promise.reject(new BrokerError("closed", { transient: true })),
        closed: Promise.resolve({ reason: "closed" } as unknown as SessionEnd),
      },
      {},
      "unanswered",
    ],
  ] as const)("%s", async ([, changes, delivery, outcome]) => {
    const { audited } = await handle(changes, delivery);
    expect(audited).toEqual([outcome]);
  });

  test("that comes while its call runs, or after its answer", async () => {
    const running = Promise.withResolvers<void>();
    const { deliver, audited } = newHandler({ whileRunning: () => running.promise });
    const first = deliver();
    await deliver(again);
    running.resolve();
    await first;
    await deliver(again);
    expect(audited).toEqual(["duplicate", "ok", "duplicate"]);
  });
});
