/**
 * Programs in Python that calls bring.
 */
import { describe, expect, test } from "vitest";
import { type RigTool, startRig } from "../../support/workers/rig.ts";

const files = {
  "calls.py": "def add(a, b):\n    return {'sum': a + b}\n",
  "helper.py": "def total(each):\n    return sum(one['sum'] for one in each)\n",
};
const add: RigTool = { module: "calls", function: "add", allowed_callers: ["programmatic"] };

const code = `
import asyncio, helper
sums = await asyncio.gather(*(tools.add(a=a, b=b) for a, b in inputs["pairs"]))
print("sums", len(sums))
display({"sums": [each["sum"] for each in sums]})
__out = helper.total(sums)`;
const inputs = {
  pairs: [
    [1, 2],
    [3, 4],
  ],
};

describe("an entry for programs in Python", () => {
  test("runs one that imports, calls tools and displays, and shows where one fails", async () => {
    const gateway = { tools: ["add"] };
    const run: RigTool = { runtime: "code", languages: ["python"], gateway };
    await using rig = await startRig({ tools: { add, run }, files });
    const answer = await rig.call("run", { code, inputs });
    expect(answer).toMatchObject({
      kind: "success",
      toolResult: { value: 10, stdout: "sums 2\n", stderr: "", displays: [{ sums: [3, 7] }] },
    });
    const failed = await rig.call("run", { code: "aSecretWord = 1\naSecretWord.y" });
    const stack = ["line 2, column 1: aSecretWord.y"];
    expect(failed).toMatchObject({
      kind: "error",
      code: "EXECUTION_ERROR",
      message: "Program raised AttributeError: 'int' object has no attribute 'y' (line 2)",
      response: { error: { data: { line: 2, column: 1, stack } } },
    });
    expect(rig.logLines.join("\n")).not.toContain("aSecretWord");
  });
});
