/**
 * Programs that calls bring, in real sandboxes.
 */
import { describe, expect, test } from "vitest";
import { type RigTool, startRig } from "../../support/workers/rig.ts";

const files = { "calls.py": "def add(a, b):\n    return {'sum': a + b}\n" };
const add: RigTool = { module: "calls", function: "add", allowed_callers: ["programmatic"] };

describe("an entry for programs", () => {
  test("runs TypeScript and JavaScript, which call tools", async () => {
    await using rig = await startRig({
      tools: { add, run: { runtime: "code", gateway: { tools: ["add"] } } },
      files,
      nodeFiles: { "none.js": "" },
    });
    const code = `
const sums: number[] = await Promise.all(
  inputs.pairs.map(async ([a, b]: [number, number]) => (await tools.add({ a, b })).sum),
);
console.log("sums", sums.length);
display({ sums });
__out = sums.reduce((one: number, other: number) => one + other);
`;
    const inputs = {
      pairs: [
        [1, 2],
        [3, 4],
      ],
    };
    const answer = await rig.call("run", { code, language: "typescript", inputs });
    expect(answer).toMatchObject({
      kind: "success",
      toolResult: { value: 10, stdout: "sums 2\n", stderr: "", displays: [{ sums: [3, 7] }] },
    });
    const failed = await rig.call("run", { code: "let x = 1;\nnull.y", language: "javascript" });
    expect(failed).toMatchObject({
      kind: "error",
      code: "EXECUTION_ERROR",
      response: { error: { data: { line: 2, stack: [expect.stringContaining("line 2")] } } },
    });
  });
});
