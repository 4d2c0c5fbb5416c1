/**
 * Progress, log lines and partial results from a tool in its sandbox to the agent; deadline and
 * trace context the other way.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { StatusDetails } from "../../../../worker/protocol/messages/status-details.ts";
import { type Rig, namespace, nodeTool, startRig } from "../../../support/workers/rig.ts";
import { runCli } from "../../harness/cli-process.ts";

let rig: Rig;

beforeAll(async () => {
  const warm = { min: 1, max: 1 };
  rig = await startRig({
    tools: {
      python: { function: "reports", start: "cold" },
      node: nodeTool("good.js", "reports", { start: "cold" }),
      parked_python: { function: "reports", start: "pool", warm },
      template_python: { function: "reports", start: "template", warm },
      parked_node: nodeTool("good.js", "reports", { start: "pool", warm }),
      raw: { function: "status_raw", start: "cold" },
    },
    isWarm: true,
  });
});
afterAll(() => rig[Symbol.asyncDispose]());

async function call(tool: string, args = {}) {
  const statuses: [text: string, details: StatusDetails | undefined][] = [];
  const result = await rig.agent.call(
    { tool, args, timeoutSeconds: 30 },
    { onStatus: (text, details) => statuses.push([text, details]) },
  );
  return { statuses, result };
}

test.each([
  ["python", "cold"],
  ["node", "cold"],
  ["parked_python", "pool"],
  ["template_python", "template"],
  ["parked_node", "pool"],
])("a tool reports: %s", async (tool, start) => {
  if (start !== "cold") await rig.untilWaiting(tool);
  const { statuses, result } = await call(tool);
  expect(statuses).toEqual([
    ["Reading (3 of 10)", { progress: { done: 3, total: 10, message: "Reading" } }],
    ["Warning: slow (page=2)", { log: { level: "warning", text: "slow", fields: { page: 2 } } }],
    ['Partial result: {"rows":3}', { partialResult: { rows: 3 } }],
  ]);
  if (result.kind !== "success") throw new Error(JSON.stringify(result));
  expect(result.response).toMatchObject({ result: { execution: { start } } });
  const { left } = result.toolResult as { left: number };
  expect(left).toBeGreaterThan(0);
  expect(left).toBeLessThanOrEqual(30);
});

test("a tool knows the trace context of its call", async () => {
  const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  const { host, port } = rig.broker;
  const { stdout, stderr } = await runCli([
    ...["invoke", "--broker", `${host}:${port}`, "--namespace", namespace],
    ...["--tool", "python", "--traceparent", traceparent],
  ]);
  expect(stderr).toContain("status: Reading (3 of 10)");
  expect(JSON.parse(stdout)).toMatchObject({ traceparent });
});

test("what a tool forges in a line reaches nobody", async () => {
  const line = {
    status: "words",
    task_id: "other",
    status_text: "other",
    timestamp: 0,
    progress: { done: 1, task_id: "other" },
    log: { level: "loud", text: "t" },
  };
  const { statuses } = await call("raw", { text: `${JSON.stringify(line)}\n` });
  expect(statuses).toEqual([["words", { progress: { done: 1 } }]]);
});
