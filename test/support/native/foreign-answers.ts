/**
 * What a worker on another system answers: the output of `foreign-worker.ts`.
 */
import { join } from "node:path";
import { expect } from "vitest";

/** The program. */
export const foreignWorker = join(import.meta.dirname, "foreign-worker.ts");

interface Looked {
  readonly drawn: readonly number[];
}

interface Answers {
  readonly children: readonly { readonly start: string; readonly result: Looked }[];
  readonly cold: { readonly result: Looked };
}

/**
 * Checks that children of one template answered with this processor and C library, each as a call
 * that started cold, and with random numbers of its own.
 */
export function expectForeignAnswers(output: string, machine: string, library: string): void {
  const { children, cold } = JSON.parse(output) as Answers;
  expect(children.map(({ start }) => start)).toEqual(["template", "template"]);
  const [first, second] = children.map(({ result }) => result);
  expect(first).toMatchObject({ machine, libraries: [library] });
  const same = { ...first, drawn: expect.any(Array) };
  expect(second).toEqual(same);
  expect(cold.result).toEqual({ ...same, imported: expect.any(Number) });
  const drawn = [first, second, cold.result].flatMap((looked) => looked?.drawn ?? []);
  expect(new Set(drawn).size).toBe(6);
}
