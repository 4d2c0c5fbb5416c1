/**
 * Checks in threads: hostile schemas, and values that take long.
 */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  CheckFailedError,
  SchemaChecker,
  checkTimeoutMs,
  maxSlowChecks,
  slowSchemaMs,
} from "../../../../worker/invocation/arguments/schema-checker.ts";
import { schemaProblem } from "../../../../worker/protocol/discovery/schema-problems.ts";
import { type Clock, systemClock } from "../../../../worker/support/clock.ts";
import type { Json, JsonObject } from "../../../../worker/support/json/json.ts";

/** Milliseconds that are added to the system's. */
let laterMs = 0;
/** Milliseconds that checks have in place of {@link checkTimeoutMs}. */
let checkMs: number;
const clock: Clock = {
  nowMs: () => systemClock.nowMs(),
  monotonicMs: () => systemClock.monotonicMs() + laterMs,
  sleep: (ms, signal) => systemClock.sleep(ms === checkTimeoutMs ? checkMs : ms, signal),
};
const { signal } = new AbortController();
const promise = { tags: "promise-R13" };
let checker: SchemaChecker;

beforeEach(() => {
  laterMs = 0;
  checkMs = 30_000;
  checker = new SchemaChecker(clock);
});
afterEach(() => checker[Symbol.asyncDispose]());

function check(schema: JsonObject, value: Json, over = signal) {
  return checker.check({ schema, value, coerce: false, isSecret: false }, over);
}

const backtracking = { type: "string", pattern: "^(a+)+$" };
const long = `${"a".repeat(60)}!`;

/** A check whose time is over soon. */
async function checkShortly(schema: JsonObject, value: Json): Promise<unknown> {
  checkMs = 300;
  try {
    return await check(schema, value);
  } finally {
    checkMs = 30_000;
  }
}

describe("a check that would take years", () => {
  test("ends, after three is not tried for a minute, and stops no other", promise, async () => {
    for (let count = 1; count <= maxSlowChecks; count++) {
      expect(await check(backtracking, "a")).toEqual({ ok: true });
      await expect(checkShortly(backtracking, long)).rejects.toThrow("too much time");
    }
    expect(await check({ type: "string" }, long)).toEqual({ ok: true });
    await expect(check(backtracking, "a")).rejects.toThrow("is too slow");
    laterMs = slowSchemaMs;
    expect(await check(backtracking, "a")).toEqual({ ok: true });
  });

  test("ends with its call", async () => {
    const call = new AbortController();
    const checked = check(backtracking, long, call.signal);
    call.abort(new Error("the call is over"));
    await expect(checked).rejects.toThrow("the call is over");
    expect(await check(backtracking, "a")).toEqual({ ok: true });
  });
});

describe("a schema of alternatives of alternatives", () => {
  const levels = Array.from({ length: 40 }, (_, level) => {
    const next = { $ref: `#/$defs/n${level + 1}` };
    return [`n${level}`, { anyOf: [next, next] }] as const;
  });
  const schema = {
    $defs: { ...Object.fromEntries(levels), n40: { type: "integer" } },
    $ref: "#/$defs/n0",
  };

  test("is accepted, since it is small, and its check ends", promise, async () => {
    expect(schemaProblem(schema)).toBeUndefined();
    await expect(checkShortly(schema, "x")).rejects.toThrow(CheckFailedError);
  });
});
