/**
 * What a Node tool sees of the end of its call: SIGTERM of the worker, before SIGKILL.
 */
import { afterAll, expect, test } from "vitest";
import { createToolContext } from "secure-tool-runtime/tool";
import { answerOf, removeWorkDirs, runBody } from "../node-runner/run-node-tool.ts";

afterAll(removeWorkDirs);

const end = `process.kill(process.pid, "SIGTERM");`;
const soon = `await new Promise((resolve) => setTimeout(resolve, 600_000));`;

test("a tool that has not asked for its signal is ended by SIGTERM", async () => {
  expect(await runBody(`${end} ${soon}`)).toMatchObject({ signal: "SIGTERM", document: undefined });
});

test("a tool that has asked goes on, and its signal aborts", async () => {
  const body = `
    const { signal } = ctx;
    const before = signal.aborted;
    const aborted = new Promise((resolve) => signal.addEventListener("abort", resolve));
    ${end}
    await Promise.race([aborted, new Promise((resolve) => setTimeout(resolve, 5_000))]);
    return { before, after: signal.aborted, same: ctx.signal === signal, name: signal.reason.name };`;
  expect(await answerOf(body)).toMatchObject({
    result: { before: false, after: true, same: true, name: "AbortError" },
  });
});

test("a tool that has asked and ends is not kept alive by that", async () => {
  expect(await answerOf(`return { aborted: ctx.signal.aborted }`)).toMatchObject({
    result: { aborted: false },
  });
});

test("the test of a tool brings the signal of its context", () => {
  const { signal } = new AbortController();
  expect(createToolContext({ signal }).signal).toBe(signal);
  const context = createToolContext();
  expect(context.signal).toBe(context.signal);
  expect(context.signal.aborted).toBe(false);
});
