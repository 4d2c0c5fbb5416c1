/**
 * Descriptions as a worker makes and keeps them: in sandboxes, once for the same code.
 */
import { chmod, mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { describeTimeoutMs } from "../../../worker/descriptions/describe.ts";
import type { JsonObject } from "../../../worker/support/json/json.ts";
import { type Describing, openDescribing } from "../../support/described/describing.ts";
import { reachableDirectory } from "../../support/workers/rig.ts";

/** A directory with Python tools, and what describes them. */
async function toolsOf(files: Readonly<Record<string, string>>, tools: Record<string, object>) {
  const base = await reachableDirectory();
  onTestFinished(() => rm(base, { recursive: true, force: true }));
  const pythonDir = join(base, "python");
  await mkdir(pythonDir);
  for (const [name, text] of Object.entries(files)) await writeFile(join(pythonDir, name), text);
  const entries = Object.entries(tools).map(([name, tool]) => [
    name,
    { runtime: "python", module: "tools", ...tool },
  ]);
  const manifestPath = join(base, "manifest.yaml");
  const manifest = { version: 1, tools: Object.fromEntries(entries) as object };
  await writeFile(manifestPath, JSON.stringify(manifest));
  const nodeDir = join(base, "none");
  const places = { manifestPath, pythonDir, nodeDir, executableDir: pythonDir };
  const workDir = join(base, "work");
  return { pythonDir, workDir, open: () => openDescribing({ ...places, workDir }) };
}

async function describeIn(opened: Describing, name: string, toolConfig?: JsonObject) {
  const tool = opened.tools.get(name);
  if (tool === undefined) throw new Error(`there is no tool ${name}`);
  return opened.descriptions.describe(tool, AbortSignal.timeout(60_000), toolConfig);
}

/** Each import of the module is another description. */
const timed = `
import os, time
__doc__ = ""
def tool(a: int = time.monotonic_ns()):
    """Tells when it was imported."""
`;

test("a description is kept over restarts, until the code changes", { tags: "full" }, async () => {
  const { pythonDir, workDir, open } = await toolsOf(
    { "tools.py": timed },
    { tool: { function: "tool" } },
  );
  const [first, second] = await (async () => {
    await using opened = await open();
    return await Promise.all([describeIn(opened, "tool"), describeIn(opened, "tool")]);
  })();
  expect(first.description).toBe("Tells when it was imported.");
  await using opened = await open();
  const again = await describeIn(opened, "tool");
  // Of two that were made at a time, the later one is kept.
  expect([first, second]).toContainEqual(again);
  await writeFile(join(pythonDir, "other.py"), "");
  expect(await describeIn(opened, "tool")).not.toEqual(again);
  expect(await readdir(join(workDir, "descriptions"))).toHaveLength(2);
});

const hostile = `
import os, socket, sys
def network():
    """No network."""
try:
    socket.create_connection(("192.0.2.1", 9), timeout=1)
except OSError as error:
    network.__doc__ = type(error).__name__ + " " + str(error.errno)
print("x" * 1_000_000)
def tool(): ...
class Forged:
    tool_description = "x"
    parameters_schema = {"type": "object", "properties": {f"p{n}": {} for n in range(20_000)}}
    def __init__(self, tool_config=None): self.tool_config = tool_config
    async def _run_async_impl(self, args, tool_context=None): ...
class Configured(Forged):
    @property
    def parameters_schema(self):
        return {"type": "object", "properties": {self.tool_config.get("name", "none"): {}}}
`;

test(
  "a module is imported offline, and its answer is bounded",
  { tags: "promise-S29" },
  async () => {
    const { workDir, open } = await toolsOf(
      {
        "tools.py": hostile,
        "raises.py": "raise ValueError('/etc/secret/x.txt')",
        "exits.py": "import os; os._exit(3)",
      },
      {
        network: { function: "network", sandbox_profile: "permissive" },
        forged: { class_name: "Forged" },
        configured: { class_name: "Configured" },
        missing: { function: "missing" },
        raises: { module: "raises", function: "tool" },
        exits: { module: "exits", function: "tool" },
      },
    );
    await using opened = await open();
    const { description } = await describeIn(opened, "network");
    expect(description).toBe("OSError 101"); // ENETUNREACH
    await expect(describeIn(opened, "forged")).rejects.toMatchObject({
      code: "RESOURCE_EXHAUSTED",
      message: "The tool's description is more than 10000 values",
    });
    await expect(describeIn(opened, "missing")).rejects.toMatchObject({
      code: "TOOL_NOT_FOUND",
      message: 'Module "tools" has no function "missing"',
    });
    await expect(describeIn(opened, "raises")).rejects.toMatchObject({ code: "IMPORT_ERROR" });
    await expect(describeIn(opened, "exits")).rejects.toMatchObject({ code: "SANDBOX_FAILED" });
    const kept = (await readdir(join(workDir, "descriptions"))).length;
    const configured = await describeIn(opened, "configured", { name: "unit" });
    expect(configured.parameters).toEqual({ type: "object", properties: { unit: {} } });
    expect(await readdir(join(workDir, "descriptions"))).toHaveLength(kept);
  },
);

const program = `#!/bin/sh
echo '{"tools": {"known": {"description": "In its own words.", "parameters": {"type": "str"}}, "more": {}}}'
`;

test("a program is described by its own words, in plain form", async () => {
  const { pythonDir, open } = await toolsOf(
    { program },
    {
      known: { runtime: "executable", module: undefined, executable: "program" },
      unknown: { runtime: "executable", module: undefined, executable: "program" },
    },
  );
  await chmod(join(pythonDir, "program"), 0o755);
  await using opened = await open();
  const described = await describeIn(opened, "known");
  expect(described).toMatchObject({ description: "In its own words.", parameters: undefined });
  await expect(describeIn(opened, "unknown")).rejects.toMatchObject({
    code: "TOOL_NOT_FOUND",
    message: 'The tool\'s program has no tool "unknown"; its tools: known, more',
  });
  const unknown = opened.tools.get("unknown")!;
  const all = await opened.descriptions.describeAll(unknown, AbortSignal.timeout(60_000));
  expect([...all.keys()]).toEqual(["known", "more"]);
  expect(all.get("known")).toEqual(described);
});

const provider = `
from secure_tool_runtime import DynamicToolProvider
class Words(DynamicToolProvider):
    """Provides two tools."""
@Words.register_tool
def count(text: str): "Counts words."
@Words.register_tool
def longest(text: str): "Finds the longest."
`;

test("a provider whose tools the manifest does not name says what they are", async () => {
  const { open } = await toolsOf({ "tools.py": provider }, { words: { class_name: "Words" } });
  await using opened = await open();
  await expect(describeIn(opened, "words")).rejects.toMatchObject({
    code: "TOOL_NOT_FOUND",
    message:
      'Class "Words" provides several tools; name them by "tools" in the manifest; its tools: count, longest',
  });
  const words = opened.tools.get("words")!;
  const all = await opened.descriptions.describeAll(words, AbortSignal.timeout(60_000));
  expect(Array.from(all, ([name, { description }]) => [name, description])).toEqual([
    ["count", "Counts words."],
    ["longest", "Finds the longest."],
  ]);
});

test("a module that never ends its import is given up", { tags: "full" }, async () => {
  const { open } = await toolsOf(
    { "tools.py": "import time\ntime.sleep(600)" },
    { tool: { function: "tool" } },
  );
  await using opened = await open();
  const seconds = describeTimeoutMs / 1000;
  await expect(describeIn(opened, "tool")).rejects.toMatchObject({
    code: "SANDBOX_TIMEOUT",
    message: `The tool's module was not imported and described within ${seconds} s`,
  });
});
