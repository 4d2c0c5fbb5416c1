/**
 * Limits: each that a backend says it keeps is reached for.
 */
import assert from "node:assert/strict";
import type { LimitKind, RuntimeLimits } from "../api/limits.ts";
import type { BackendCheck } from "./under-check.ts";
import type { Programs } from "./programs.ts";

const mebibyte = 1024 * 1024;

interface ReachedLimit {
  readonly kind: Exclude<LimitKind, "timeout" | "toolCalls" | "chainSteps">;
  readonly limits: RuntimeLimits;
  readonly program: (programs: Programs) => string;
}

/** Each program comes to `true` where nothing stops it. */
const reached: readonly ReachedLimit[] = [
  {
    ...{ kind: "memory", limits: { memoryBytes: 192 * mebibyte } },
    program: ({ memory }) => memory,
  },
  { kind: "cpu", limits: { cpuQuotaMillis: 700 }, program: ({ cpu }) => cpu },
  { kind: "pids", limits: { pidsMax: 40 }, program: ({ pids }) => pids },
  {
    ...{ kind: "disk", limits: { diskBytes: 8 * mebibyte } },
    program: ({ disk }) => disk,
  },
];

/** The error of a program that was ended for a limit, or that got no more. */
const stopped = ["RESOURCE_LIMIT", "EXECUTION_FAILED", "SANDBOX_VIOLATION"];

const reachedChecks = reached.map(({ kind, limits, program }): BackendCheck => [
  `keeps the limit of ${kind} if it says so`,
  async ({ backend, run, programs }) => {
    const says = backend.evidence[kind];
    // It may be kept for this language alone.
    const { limitsEnforced, limitsEnforcedBy } = await run(programs.number(1), { limits });
    if (says !== undefined) assert.equal(limitsEnforced[kind], true);
    if (!limitsEnforced[kind]) return assert.equal(limitsEnforcedBy[kind], undefined);
    const outcome = await run(program(programs), { limits, timeoutMs: 20_000 }).catch(
      (error: unknown) => error as { readonly code?: string },
    );
    if ("limitsEnforced" in outcome) {
      assert.equal(outcome.limitsEnforced[kind], true);
      assert.equal(outcome.limitsEnforcedBy[kind], limitsEnforcedBy[kind]);
      if (limitsEnforcedBy[kind] === "absent") assert.equal(outcome.value, "absent");
      else assert.notEqual(outcome.value, true, "nothing stopped it");
      return;
    }
    assert.ok(stopped.includes(String(outcome.code)), `it ended by ${outcome.code}`);
  },
]);

/** The limits of calls, and of the time. */
const checks: readonly BackendCheck[] = [
  ...reachedChecks,
  [
    "keeps the limit of calls",
    async ({ run, programs }) => {
      const { value, toolCalls, limitsEnforced } = await run(programs.manyCalls, {
        limits: { maxToolCalls: 4 },
      });
      assert.equal(value, 4);
      assert.equal(toolCalls.length, 4);
      assert.equal(limitsEnforced.toolCalls, true);
    },
  ],
  [
    "runs no step of a chain that is too long",
    async ({ run, programs }) => {
      const { value, toolCalls, limitsEnforced } = await run(programs.longChain, {
        limits: { maxChainSteps: 4 },
      });
      assert.equal(value, "LIMIT_REACHED");
      assert.deepEqual(toolCalls, []);
      assert.equal(limitsEnforced.chainSteps, true);
    },
  ],
];

export function limitChecks(): readonly BackendCheck[] {
  return checks;
}
