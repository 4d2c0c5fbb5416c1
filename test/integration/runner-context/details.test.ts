/**
 * Progress, log lines, partial results, deadline and trace context: the same from both runners.
 */
import { afterAll, describe, expect, test } from "vitest";
import { runBody } from "../node-runner/run-node-tool.ts";
import {
  type RunOptions,
  type ToolRun,
  forkRunners,
  removeWorkDirs,
  runTool,
  statuses,
} from "../tool-runner/run-tool.ts";

forkRunners();
afterAll(removeWorkDirs);

const reports = `
  const { text = "t" } = args;
  return {
    sent: [
      await ctx.reportProgress({ done: 3, total: 10, message: "Reading" }),
      await ctx.reportProgress({ done: 2.5 }),
      await ctx.log("info", "Fetched", { url: "a b", bytes: 12, cached: null, ok: true, path: ["x"] }),
      await ctx.log("warning", text),
      await ctx.log("loud", "unknown level"),
      await ctx.partialResult({ rows: [1, null, "é"] }),
    ],
    refused: [
      await ctx.reportProgress({ done: -1 }),
      await ctx.reportProgress({ done: 1, total: NaN }),
      await ctx.reportProgress({ done: "many" }),
      await ctx.partialResult(null),
      await ctx.partialResult("x".repeat(5000)),
      await ctx.partialResult(1n),
    ],
  };`;
const facts = `return {
  deadline: ctx.deadlineMs === undefined ? null : ctx.deadlineMs / 1000,
  left: ctx.timeLeftSeconds() ?? null,
  traceparent: ctx.traceparent ?? null,
  tracestate: ctx.tracestate ?? null,
};`;

type Run = (options: RunOptions) => Promise<ToolRun>;

const runners: readonly [name: string, reports: Run, facts: Run, shown: readonly string[]][] = [
  [
    "Python",
    (options) => runTool("context_tools", "reports", options),
    (options) => runTool("context_tools", "call_facts", options),
    ["cached=None", "ok=True", "('x',)"],
  ],
  [
    "Node",
    (options) => runBody(reports, options),
    (options) => runBody(facts, options),
    ["cached=null", "ok=true", "x"],
  ],
];

describe.each(runners)("the context of %s", (_name, report, callFacts, [cached, ok, path]) => {
  test("reports in words and as data", async () => {
    const run = await report({});
    expect(run.document).toMatchObject({
      result: { sent: Array(6).fill(true), refused: Array(6).fill(false) },
    });
    const fields = { url: "a b", bytes: 12, cached: null, ok: true, path };
    expect(run.statusLines.map((line) => JSON.parse(line) as unknown)).toEqual([
      { status: "Reading (3 of 10)", progress: { done: 3, total: 10, message: "Reading" } },
      { status: "2.5", progress: { done: 2.5 } },
      {
        status: `Fetched (url=a b, bytes=12, ${cached}, ${ok}, path=${path})`,
        log: { level: "info", text: "Fetched", fields },
      },
      { status: "Warning: t", log: { level: "warning", text: "t" } },
      { status: "unknown level", log: { level: "info", text: "unknown level" } },
      {
        status: 'Partial result: {"rows":[1,null,"é"]}',
        partial_result: { rows: [1, null, "é"] },
      },
    ]);
  });

  test("leaves the details out where the line has no room for them", async () => {
    const fits = "x".repeat(2_005);
    expect((await report({ args: { text: fits } })).statusLines[3]).toContain('"log"');
    const text = "x".repeat(2_050);
    const run = await report({ args: { text } });
    expect(run.statusLines[3]).toBe(`{"status": "Warning: ${text}"}`);
    const long = statuses(await report({ args: { text: "x".repeat(9_000) } }))[3];
    expect(long).toMatch(/^Warning: x{4000,}…$/);
  });

  test("knows the deadline and the trace context where the call has them", async () => {
    const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const deadlineMs = Date.now() + 600_500;
    const members = { deadline_ms: deadlineMs, traceparent, tracestate: "v=1" };
    const known = (await callFacts({ members })).document?.["result"];
    expect(known).toMatchObject({
      deadline: deadlineMs / 1000,
      traceparent,
      tracestate: "v=1",
    });
    const { left } = known as { left: number };
    expect(left).toBeGreaterThan(0);
    expect(left).toBeLessThanOrEqual(600.5);
    expect((await callFacts({ members: { deadline_ms: 1 } })).document).toMatchObject({
      result: { left: 0 },
    });
    expect((await callFacts({})).document).toMatchObject({
      result: { deadline: null, left: null, traceparent: null, tracestate: null },
    });
  });
});

test("the asynchronous context of Python has the same members", async () => {
  const run = await runTool("context_tools", "portable_call_facts", {
    members: { deadline_ms: 1_000, traceparent: "00-1", tracestate: "v=1" },
  });
  expect(run.document).toMatchObject({
    result: { deadline: 1, left: 0, traceparent: "00-1", tracestate: "v=1", sent: true },
  });
  expect(statuses(run)).toEqual(["1 of 2", "Error: no (level=1)", "Partial result: [1]"]);
});
