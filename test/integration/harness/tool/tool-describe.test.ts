/**
 * `harness tool describe`: what a tool of a file says of itself, for people and for programs.
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createPassableDirectory } from "../../../../harness/temporary.ts";
import { runCli } from "../cli-process.ts";

const tools = `
from typing import List, Literal, Optional, Union
from secure_tool_runtime import Artifact, DynamicTool, ToolContext

def forecast(ctx: ToolContext, city: str, photos: List[Artifact], days: int = 3,
             unit: Literal["celsius", "kelvin"] = "celsius",
             near: Union[List[str], str, None] = None, more=None) -> dict:
    """Tells the weather.

    Args:
        city: Where
            to look.
    """


class Greeter(DynamicTool):
    tool_description = "Greets."
    @property
    def parameters_schema(self):
        return {"properties": {self.tool_config["name"]: {"type": "string"}}}
    async def _run_async_impl(self, args, tool_context=None, credential=None):
        return {}
`;
let home: Awaited<ReturnType<typeof createPassableDirectory>>;

beforeAll(async () => {
  home = await createPassableDirectory("str-describe-test-");
  await writeFile(join(home.path, "tools.py"), tools);
});
afterAll(() => home[Symbol.asyncDispose]());

test("a tool is described for people", async () => {
  const result = await runCli(["tool", "describe", `${join(home.path, "tools.py")}:forecast`]);
  expect(result.stderr).toBe("");
  expect(result.stdout.split("\n")).toEqual([
    "forecast: Tells the weather.",
    "Parameters:",
    "  city: string  Where to look.",
    "  photos: artifacts  Filenames of artifacts",
    "  days: integer, optional",
    '  unit: "celsius" | "kelvin", optional',
    "  near: array of string | string | null, optional",
    "  more: anything, optional",
    "Result:",
    "  any members",
    "",
  ]);
  expect(result.exitCode).toBe(0);
});

test("a class tool is described by its configuration, for programs", async () => {
  const target = `${join(home.path, "tools.py")}:Greeter`;
  const config = JSON.stringify({ name: "who" });
  const result = await runCli(["tool", "describe", target, "--json", "--config", config]);
  expect(JSON.parse(result.stdout)).toEqual({
    description: "Greets.",
    parameters: { type: "object", properties: { who: { type: "string" } } },
    artifactParameters: {},
  });
  expect(result.exitCode).toBe(0);
});

test("what cannot be described is told with its reason", async () => {
  const result = await runCli(["tool", "describe", `${join(home.path, "tools.py")}:missing`]);
  expect(result).toMatchObject({ exitCode: 1, stdout: "" });
  expect(result.stderr).toContain('TOOL_NOT_FOUND: Module "tools" has no function "missing"');
});
