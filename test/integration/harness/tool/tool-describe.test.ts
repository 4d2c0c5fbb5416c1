/**
 * `harness tool describe`: what a tool of a file says of itself, for people and for programs.
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parse } from "yaml";
import { createPassableDirectory } from "../../../../harness/temporary.ts";
import { runCli } from "../cli-process.ts";

const tools = `
from typing import List, Literal, Optional, Union
from secure_tool_runtime import Artifact, DynamicTool, DynamicToolProvider, ToolContext

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


class Words(DynamicToolProvider):
    pass

@Words.register_tool
def count(self, text: str) -> int:
    """Counts words."""

@Words.register_tool
def longest(self, text: str) -> str:
    """Finds the longest."""
`;

const program = `#!/bin/sh
cat <<'END'
{"tools": {
  "upper": {"description": "Makes capitals.", "parameters": {"type": "object", "properties": {"text": {"type": "string"}}}},
  "digest": {"artifact_params": {"file": {"is_list": false}}}
}}
END
`;

const manifest = `version: 1
tools:
  texts:
    runtime: executable
    executable: texts
    tools: [upper, digest]
  weather:
    module: tools
    function: forecast
    description: In the words of the manifest
    instructions: Ask for a city first
    parameters: { type: object, properties: { town: { type: string } } }
`;

let home: Awaited<ReturnType<typeof createPassableDirectory>>;

beforeAll(async () => {
  home = await createPassableDirectory("str-describe-test-");
  await writeFile(join(home.path, "tools.py"), tools);
  await writeFile(join(home.path, "texts"), program, { mode: 0o755 });
  await writeFile(join(home.path, "manifest.yaml"), manifest);
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

test("a class tool is described by its configuration, for programs", { tags: "full" }, async () => {
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

test("the tools of a provider go into one entry", async () => {
  const target = `${join(home.path, "tools.py")}:Words`;
  const entry = await runCli([
    "tool",
    "describe",
    target,
    "--manifest",
    "--profile",
    "restrictive",
  ]);
  expect(parse(entry.stdout)).toEqual({
    Words: {
      runtime: "python",
      module: "tools",
      class_name: "Words",
      tools: ["count", "longest"],
      sandbox_profile: "restrictive",
    },
  });
});

test("each tool of a provider is described, or one by its name", { tags: "full" }, async () => {
  const target = `${join(home.path, "tools.py")}:Words`;
  const { stdout, exitCode } = await runCli(["tool", "describe", target]);
  expect(stdout).toMatch(
    /^count: Counts words\.\nParameters:\n {2}text: string\n.*\n\nlongest: Finds the longest\./s,
  );
  expect(exitCode).toBe(0);
  const one = await runCli(["tool", "describe", target, "--tool", "longest", "--json"]);
  expect(JSON.parse(one.stdout)).toMatchObject({ description: "Finds the longest." });
  const none = await runCli(["tool", "describe", target, "--tool", "shortest"]);
  expect(none).toMatchObject({ exitCode: 1, stdout: "" });
  expect(none.stderr).toContain(
    'TOOL_NOT_FOUND: Class "Words" provides no tool "shortest"; its tools: count, longest',
  );
});

test("a program is described in its own words", async () => {
  const { stdout, exitCode } = await runCli(["tool", "describe", join(home.path, "texts")]);
  expect(stdout.split("\n")).toEqual([
    "upper: Makes capitals.",
    "Parameters:",
    "  text: string, optional",
    "Result: not known",
    "",
    "digest: (no description)",
    "Parameters: not known",
    "Result: not known",
    "",
  ]);
  expect(exitCode).toBe(0);
});

test("the tools of a manifest are described with what it says", { tags: "full" }, async () => {
  const all = await runCli(["tool", "describe", home.path, "--json"]);
  expect(JSON.parse(all.stdout)).toMatchObject({
    tools: {
      upper: { description: "Makes capitals." },
      digest: { artifactParameters: { file: { isList: false } } },
      weather: {
        description: "In the words of the manifest",
        parameters: { properties: { town: { type: "string" } } },
      },
    },
  });
  const one = await runCli(["tool", "describe", home.path, "--tool", "weather"]);
  expect(one.stdout).toMatch(/^weather: In the words of the manifest\nInstructions: Ask for/);
  const none = await runCli(["tool", "describe", home.path, "--tool", "climate"]);
  expect(none).toMatchObject({ exitCode: 2, stdout: "" });
  expect(none.stderr).toContain('has no tool "climate"; its tools: upper, digest, weather');
});
