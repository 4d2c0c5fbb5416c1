/**
 * What code comes to: values, streams, failures, ends, calls.
 */
import assert from "node:assert/strict";
import { limitKinds } from "../api/limits.ts";
import { deepFreeze, rejection, rejectsWith } from "./check.ts";
import { printed } from "./programs.ts";
import type { BackendCheck } from "./under-check.ts";

/** Executions at once. */
const manyAtOnce = 50;
/** Milliseconds of an execution that is to be ended. */
const shortTimeoutMs = 500;
/** How much longer than a whole execution code may take to begin: the machine may be busy. */
const startFactor = 4;
/** Characters of a stream that a result may have. */
const maxStreamLength = 64 * 1024;

/** What a RuntimeError has for those that do not know its class. */
interface Failure {
  readonly data?: { readonly line?: number };
  readonly partial?: { readonly stdout?: string };
}

const checks: readonly BackendCheck[] = [
  [
    "tells its kind, the time, and which limits were kept",
    async ({ backend, run, programs }) => {
      const result = await run(programs.number(1));
      assert.equal(result.backend.kind, backend.kind);
      assert.ok(["production", "beta", "prototype", "stub"].includes(result.backend.readiness));
      assert.equal(typeof result.backend.details, "object");
      assert.ok(result.durationMs > 0);
      assert.deepEqual(Object.keys(result.limitsEnforced), [...limitKinds]);
      assert.deepEqual(result.toolCalls, []);
      assert.equal(result.limitsEnforced.memory, false, "no limit of memory was set");
    },
  ],
  [
    "returns values as they are",
    async ({ run, programs }) => {
      const { value } = await run(programs.values);
      assert.deepEqual(value, {
        text: "ü\u2028😀",
        numbers: [0, -1.5, 1e21, Number.MAX_SAFE_INTEGER],
        flags: [true, false],
        nothing: null,
        deep: [[[{ a: {} }]]],
      });
    },
  ],
  [
    "returns the last expression without __out",
    async ({ run, programs }) => assert.equal((await run(programs.lastExpression)).value, 42),
  ],
  [
    "keeps the two streams apart",
    async ({ run, programs }) => {
      const { stdout, stderr } = await run(programs.streams);
      assert.deepEqual({ stdout, stderr }, printed);
    },
  ],
  [
    "bounds the streams, and goes on",
    async ({ run, programs }) => {
      const { value, stdout } = await run(programs.longOutput);
      assert.equal(value, 1);
      assert.ok(stdout.startsWith("x".repeat(100)));
      assert.ok(stdout.length <= maxStreamLength, `${stdout.length} characters`);
    },
  ],
  [
    "takes no printed text for the value",
    async ({ run, programs }) => {
      const { value, stdout } = await run(programs.forgedMarks);
      assert.equal(value, "mine");
      assert.match(stdout, /__OUT__:forged/);
    },
  ],
  [
    "tells where code failed, and what it had printed",
    async ({ run, programs }) => {
      const failure = await rejectsWith<Failure>(run(programs.throws), "EXECUTION_FAILED");
      assert.equal(failure.data?.line, 3);
      assert.equal(failure.partial?.stdout, "before\n");
    },
  ],
  [
    "runs nothing of code with a wrong syntax",
    async ({ run, programs }) => {
      const failure = await rejectsWith<Failure>(run(programs.syntaxError), "EXECUTION_FAILED");
      assert.equal(failure.data?.line, 2);
      assert.equal(failure.partial?.stdout ?? "", "");
    },
  ],
  [
    "ends code at its time, with what it had printed",
    async ({ run, programs }) => {
      const { durationMs } = await run(programs.number(1));
      const timeoutMs = shortTimeoutMs + Math.ceil(startFactor * durationMs);
      const startMs = performance.now();
      const running = run(programs.printsAndHangs, { timeoutMs });
      const failure = await rejectsWith<Failure>(running, "TIMEOUT");
      assert.match(failure.message, /execution timeout/);
      assert.equal(failure.partial?.stdout, "before\n");
      assert.ok(performance.now() - startMs >= timeoutMs - 1);
    },
  ],
  [
    "ends code that is not wanted any more",
    async ({ run, programs }) => {
      const controller = new AbortController();
      const reason = new Error("not wanted");
      const running = run(programs.printsAndHangs, {}, { signal: controller.signal });
      setTimeout(() => controller.abort(reason), shortTimeoutMs);
      assert.equal(await rejection(running), reason);
    },
  ],
  [
    "takes frozen requests, and changes none",
    async ({ run, programs }) => {
      const more = deepFreeze({ limits: { maxToolCalls: 3 }, metadata: { of: ["one", { a: 1 }] } });
      assert.equal((await run(programs.number(7), more)).value, 7);
    },
  ],
  [
    "gives results that share nothing",
    async ({ run, programs }) => {
      const one = await run(programs.values);
      Object.assign(one.value as object, { text: "changed" });
      Object.assign(one.backend.details, { changed: true });
      const other = await run(programs.values);
      assert.equal((other.value as { text: string }).text, "ü\u2028😀");
      assert.equal(other.backend.details["changed"], undefined);
    },
  ],
  [
    `runs ${manyAtOnce} at once, each with its own result`,
    async ({ run, programs }) => {
      const numbers = Array.from({ length: manyAtOnce }, (_, number) => number);
      const results = await Promise.all(
        numbers.map((number) => run(programs.number(number), { timeoutMs: 60_000 })),
      );
      assert.deepEqual(
        results.map(({ value }) => value),
        numbers,
      );
    },
  ],
  [
    "calls tools, and records the calls",
    async ({ run, programs }) => {
      const { value, toolCalls } = await run(programs.calls);
      assert.deepEqual(value, [3, 4, 5]);
      assert.deepEqual(
        toolCalls.map(({ toolId, errorOp }) => [toolId, errorOp]),
        Array(3).fill(["math:add", undefined]),
      );
      for (const { durationMs } of toolCalls) assert.ok(durationMs >= 0);
    },
  ],
  [
    "runs chains",
    async ({ run, programs }) => {
      const { value, toolCalls } = await run(programs.chain);
      assert.equal(value, 3);
      assert.deepEqual(
        toolCalls.map(({ toolId }) => toolId),
        ["math:add", "text:echo"],
      );
    },
  ],
  [
    "hands errors of tools to code, which can go on",
    async ({ run, programs }) => {
      const { value, toolCalls } = await run(programs.caughtError);
      assert.equal(value, "TOOL_ERROR");
      assert.deepEqual(
        toolCalls.map(({ toolId, errorOp }) => [toolId, errorOp]),
        [["text:fail", "execute"]],
      );
    },
  ],
  [
    "finds and describes tools",
    async ({ run, programs }) => {
      const { value } = await run(programs.lookups);
      assert.deepEqual(value, ["math:add", "math:add", ["math", "text"]]);
    },
  ],
];

export function executionChecks(): readonly BackendCheck[] {
  return checks;
}
