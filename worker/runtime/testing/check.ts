/**
 * Checks, and what they have in common.
 */
import assert from "node:assert/strict";

/** A named check. */
export interface Check {
  readonly name: string;
  /** Rejects where what is checked does not hold, such as with AssertionError. */
  run(): Promise<void>;
}

/** Milliseconds between two looks at what is to become true. */
const lookMs = 20;

/** Waits until it is true, at most so many milliseconds. Rejects with AssertionError. */
export async function becomes(
  what: string,
  isTrue: () => boolean | Promise<boolean>,
  withinMs: number,
): Promise<void> {
  const endMs = performance.now() + withinMs;
  while (!(await isTrue())) {
    assert.ok(performance.now() < endMs, `${what}: not within ${withinMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, lookMs));
  }
}

/** The error that a promise rejects with. Rejects with AssertionError where it does not. */
export async function rejection(promise: Promise<unknown>): Promise<unknown> {
  const settled = await promise.then(
    (value) => ({ value }),
    (error: unknown) => ({ error }),
  );
  if ("error" in settled) return settled.error;
  return assert.fail(`expected an error, got ${JSON.stringify(settled.value)}`);
}

/** Asserts that a promise rejects with an error of a code, and returns it. */
export async function rejectsWith<Facts extends object>(
  promise: Promise<unknown>,
  ...codes: readonly string[]
): Promise<Facts & { readonly code: string; readonly message: string }> {
  const error = await rejection(promise);
  const { code } = Object(error) as { readonly code?: unknown };
  assert.ok(codes.includes(String(code)), `expected ${codes.join(" or ")}, got ${String(error)}`);
  return error as Facts & { readonly code: string; readonly message: string };
}

/** Freezes a value and all that it has, but for objects with methods. */
export function deepFreeze<Value>(value: Value): Value {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && !Array.isArray(value)) return value;
  Object.values(value).forEach(deepFreeze);
  return Object.freeze(value);
}
