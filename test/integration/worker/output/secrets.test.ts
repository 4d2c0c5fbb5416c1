/**
 * What a tool says, is given or leaves reaches its caller, and not the log above debug.
 */
import { expect, test } from "vitest";
import { startRig } from "../../../support/workers/rig.ts";

const secret = "s3cr3t-marker";

test("neither arguments, configuration, results nor a tool's own words stand in the log above debug", async () => {
  await using rig = await startRig({
    tools: {
      raises: { module: "telling", function: "raises" },
      reports: { module: "telling", function: "reports" },
      dies: { module: "telling", function: "dies" },
      garbles: { module: "telling", function: "garbles" },
      well: { function: "well" },
    },
    files: {
      "telling.py": `
import os, sys
from secure_tool_runtime import ToolError

def raises(value):
    raise ValueError(value)

def reports(value):
    raise ToolError(value)

def dies(value):
    os.write(2, value.encode())
    os._exit(7)

def garbles(value):
    with open("/sandbox/work/result.json", "w") as file:
        file.write('{"result": ' + value)
    os._exit(0)
`,
    },
  });
  const more = { toolConfig: { key: secret } };
  const answers = [];
  for (const tool of ["raises", "reports", "dies", "garbles"]) {
    const answer = await rig.call(tool, { value: secret }, more);
    answers.push(answer.kind === "error" ? `${answer.code} ${answer.message}` : answer.kind);
  }
  expect(answers).toEqual([
    expect.stringMatching(`^EXECUTION_ERROR .*${secret}`),
    expect.stringMatching(`^TOOL_ERROR .*${secret}`),
    expect.stringMatching(`^SANDBOX_FAILED .*${secret}`),
    expect.stringMatching("^INTERNAL_ERROR The tool's result cannot be read: not valid JSON"),
  ]);
  expect(await rig.call("well", { message: secret }, more)).toMatchObject({ kind: "success" });

  const told = rig.logLines.filter((line) => line.includes(secret));
  expect(told.filter((line) => !line.startsWith('{"level":"debug"'))).toEqual([]);
  // The developer's level has the tool's words, so the lines above are there to be searched.
  expect(told.length).toBeGreaterThan(0);
});
