/**
 * Programs in Python that are started as a worker starts them, cold and ahead of their call: what
 * they import, and the tools that they call.
 */
import { afterAll, describe, expect, test } from "vitest";
import { type Serve, failure, result, runProgram } from "../../node-runner/gateway/gateway-run.ts";
import { removeWorkDirs } from "../run-tool.ts";
import { nothingElse } from "./program-runs.ts";

afterAll(removeWorkDirs);

const serve: Serve = ({ payload }) =>
  payload["id"] === "refused"
    ? failure({ error: "no", code: "NOT_ALLOWED", retryable: false })
    : result(payload);

const calls = `
import sys, helper
from secure_tool_runtime import ToolCallError, tools as same
rows = tools.sync.sales.query(region=inputs["region"])
before = "asyncio" in sys.modules
async def main():
    from asyncio import gather
    both = await gather(*(tools.call("echo", {"n": n}) for n in (1, 2)))
    try:
        await tools.refused()
    except ToolCallError as error:
        code = error.code
    print(helper.name)
    return {"before": before, "rows": rows, "both": both, "code": code, "same": same is tools}
main()`;

describe.for([false, true])("a program in Python (parked: %s)", (isParked) => {
  test("imports and calls tools", async () => {
    const files = { "helper.py": "name = 'helper'\n" };
    const options = { language: "python", isParked, inputs: { region: "West" }, files };
    const run = await runProgram(calls, serve, options);
    expect(run).toMatchObject({ exitCode: 0, stdout: "helper\n", stderr: "" });
    const value = {
      before: false,
      rows: { id: "sales:query", args: { region: "West" } },
      both: [1, 2].map((n) => ({ id: "echo", args: { n } })),
      code: "NOT_ALLOWED",
      same: true,
    };
    expect(run.document).toEqual({
      result: { ...nothingElse, value, stdout: "helper\n" },
      outputs: {},
    });
  });
});
