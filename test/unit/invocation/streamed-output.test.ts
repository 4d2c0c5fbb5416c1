/**
 * The output of a program as statuses.
 */
import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import {
  maxStreamedBytes,
  streamOutput,
} from "../../../worker/invocation/programs/streamed-output.ts";

async function streamed(...chunks: readonly string[]) {
  const execution = { stdout: new PassThrough(), stderr: new PassThrough() };
  const statuses: { text: string; partial: unknown }[] = [];
  const output = streamOutput(execution, (text, details) =>
    statuses.push({ text, partial: details?.partialResult }),
  );
  for (const chunk of chunks) execution.stdout.write(chunk);
  await new Promise((resolve) => execution.stdout.end(resolve));
  output[Symbol.dispose]();
  return statuses;
}

test("lines come whole, and the rest at the end", async () => {
  const statuses = await streamed("one\ntw", "o\nthr", "ee");
  expect(statuses).toEqual([{ text: "three", partial: { stdout: "one\ntwo\nthree" } }]);
});

test.for([
  ["in one piece", ["x".repeat(maxStreamedBytes + 1)]],
  ["behind the last byte", ["x".repeat(maxStreamedBytes), "y", "z\n"]],
] as const)("a stream is cut at its bound, and says so once: %s", async ([, chunks]) => {
  const text = (await streamed(...chunks))
    .map(({ partial }) => (partial as { stdout: string }).stdout)
    .join("");
  expect(text.replaceAll("\n", "")).toBe(`${"x".repeat(maxStreamedBytes)}…`);
});

test("a status has no characters that deceive, and its data has them", async () => {
  const statuses = await streamed("\u001b[2Jgone\n");
  expect(statuses).toEqual([{ text: " [2Jgone", partial: { stdout: "\u001b[2Jgone" } }]);
});
