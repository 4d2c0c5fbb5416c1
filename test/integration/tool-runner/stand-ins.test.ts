/**
 * The packages that tools of the original import: not installed, they have stand-ins; installed,
 * they win.
 */
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, describe, expect, test } from "vitest";
import {
  forkRunners,
  python,
  removeWorkDirs,
  type RunOptions,
  runTool,
  runnerDir,
} from "./run-tool.ts";

forkRunners();

const directories: string[] = [];

afterAll(async () => {
  await removeWorkDirs();
  await Promise.all(directories.splice(0).map((path) => rm(path, { recursive: true })));
});

/** A tool directory with these files, by path. */
async function toolsDir(files: Readonly<Record<string, string>>): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "stand-ins-"));
  directories.push(directory);
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(directory, path)), { recursive: true });
    await writeFile(join(directory, path), text);
  }
  return directory;
}

/** What a tool of this source returns, which is beside these files. */
async function resultOf(source: string, files: Readonly<Record<string, string>> = {}) {
  const run = await runTool("tool", "run", {
    toolsDir: await toolsDir({ ...files, "tool.py": source }),
  });
  return run.document?.["result"] ?? run.document?.["error"];
}

describe("a tool for the separate package runs", () => {
  const call = (name: string, options: RunOptions = {}) => runTool("sdk_tools", name, options);
  const blank = { data: null, data_objects: [] as object[], error_code: null };

  test("with its decorators, its context and its results", async () => {
    const run = await call("greet", {
      args: { name: "Ann", excited: true },
      toolConfig: { api_token: "t" },
    });
    expect(run.document).toEqual({
      result: { ...blank, status: "success", message: "Hello, Ann!", data: { token: "t" } },
      outputs: {},
    });
    expect(run.statusLines).toEqual(['{"status": "Greeting Ann..."}']);
  });

  test("as a plain function, too", async () => {
    expect((await call("forecast", { args: { city: "Oslo" } })).document).toMatchObject({
      result: { message: "Sunny", data: { task: "task-7" } },
    });
  });

  test("with artifacts", async () => {
    const run = await call("count", {
      args: { docs: ["a.txt"] },
      artifacts: { "docs[0]": { filename: "a.txt", content: "four" } },
    });
    expect(run.document).toMatchObject({ result: { data: { sizes: { "a.txt": 4 } } } });
  });

  test("as a function that a provider offers", async () => {
    expect((await call("offered", { args: { city: "Oslo" } })).document).toMatchObject({
      result: {
        city: "Oslo",
        schema: [{ key: "url", type: "string", description: "where", default: "x" }],
      },
    });
  });

  test.for(["provided", "provided_within"])(
    "as a function that gets the instance of its provider, and its configuration: %s",
    async (name) => {
      const run = await call(name, { args: { name: "Ann" }, toolConfig: { prefix: "Hi" } });
      expect(run.document).toMatchObject({
        result: { greeting: "Hi, Ann!", prefix: "Hi", task: "task-7", provider: "Tools" },
      });
    },
  );

  test("as a function that is registered with no provider in particular", async () => {
    expect((await call("provided_by_all", { args: { name: "Ann" } })).document).toMatchObject({
      result: { name: "Ann", is_provider: true },
    });
  });

  test("as a function that says `self` and has no provider, which is an error", async () => {
    expect((await call("provided_by_none", { args: { name: "Ann" } })).document).toEqual({
      error: 'provided_by_none() is missing the argument "self"',
      error_code: "EXECUTION_ERROR",
    });
  });

  test("whose provider does not take the configuration, which is an error", async () => {
    const run = await call("provided", { args: { name: "Ann" }, toolConfig: { secret: "s" } });
    expect(run.document).toMatchObject({
      error: expect.stringMatching(/^The tool's configuration is not a Config: /) as string,
    });
  });

  test("without a token and a volume, which no call brings", async () => {
    expect((await call("without_a_token")).document).toMatchObject({
      result: { ...blank, status: "error", error_code: "AUTH_REQUIRED" },
    });
  });

  test("with a result that it has dumped itself", async () => {
    expect((await call("dumped")).document).toMatchObject({
      result: {
        _schema: "ToolResult",
        status: "pending",
        data_objects: [{ name: "a.txt", content: "text", is_binary: false }],
      },
    });
  });

  test("with a preview of bytes, which is text", async () => {
    const { document } = await call("previewed");
    expect(document).toMatchObject({
      result: {
        ...blank,
        data_objects: [{ name: "a.bin", content: "an e", disposition: "inline" }],
      },
      outputs: { "a.bin": { mime_type: "x/y" } },
    });
    expect(JSON.stringify(document)).not.toContain("is_binary");
  });

  test("as a class, which has the context as tool_context, too", async () => {
    const members = { function: null, class_name: "GetForecast" };
    const run = await call("", { args: { city: "Oslo" }, members });
    expect(run.document).toMatchObject({ result: { forecast: "Sunny in Oslo" } });
    expect(run.statusLines).toEqual(['{"status": "looking at the sky"}']);
  });

  test("but its command line does not", async () => {
    expect((await call("cli")).document).toEqual({
      error:
        "Tool called sys.exit('this stand-in for sam_tool_sdk has no command line; a manifest names the tool')",
      error_code: "EXECUTION_ERROR",
    });
  });
});

describe("an installed package wins", () => {
  test("as a whole", async () => {
    const source = "import sam_tool_sdk\ndef run(): return {'real': sam_tool_sdk.REAL}\n";
    expect(await resultOf(source, { "sam_tool_sdk/__init__.py": "REAL = 1\n" })).toEqual({
      real: 1,
    });
  });

  test("also one that the tool adds to its path", async () => {
    const source = [
      "import os, sys",
      "sys.path.append(os.path.join(os.path.dirname(__file__), 'vendor'))",
      "import sam_tool_sdk",
      "def run(): return {'real': sam_tool_sdk.REAL}",
    ].join("\n");
    expect(await resultOf(source, { "vendor/sam_tool_sdk.py": "REAL = 2\n" })).toEqual({ real: 2 });
  });

  test("in the parts that it has", async () => {
    const source = [
      "from solace_agent_mesh.agent.tools.tool_result import ToolResult",
      "from solace_agent_mesh.agent.utils import ToolContextFacade",
      "async def run(ctx: ToolContextFacade): return {'real': ToolResult, 'ctx': ctx.user_id}",
    ].join("\n");
    const files = {
      "solace_agent_mesh/__init__.py": "",
      "solace_agent_mesh/agent/__init__.py": "",
      "solace_agent_mesh/agent/tools/__init__.py": "",
      "solace_agent_mesh/agent/tools/tool_result.py": "ToolResult = 'real'\n",
    };
    expect(await resultOf(source, files)).toEqual({ real: "real", ctx: "user-42" });
  });

  const module = "solace_agent_mesh.agent.tools.artifact_types";

  test.for([
    ["classes", `import ${module} as at`, "at.Artifact"],
    ["strings", `from __future__ import annotations\nfrom ${module} import Artifact`, "Artifact"],
  ])("when artifacts are made for annotations that are %s", async ([, imports, name]) => {
    const source = [
      imports,
      "from typing import List",
      `def run(one: ${name}, files: List[${name}]):`,
      "    return {'classes': [type(each).__qualname__ for each in (one, *files)]}",
    ].join("\n");
    const files = {
      "tool.py": source,
      "solace_agent_mesh/agent/tools/artifact_types.py": [
        "class Real:",
        "    class Artifact:",
        "        def __init__(self, content, filename, version, mime_type, metadata): pass",
        "Artifact = Real.Artifact",
      ].join("\n"),
    };
    const artifact = { filename: "a.txt", content: "a" };
    const run = await runTool("tool", "run", {
      toolsDir: await toolsDir(files),
      artifacts: { one: artifact, "files[0]": artifact },
    });
    expect(run.document).toMatchObject({ result: { classes: ["Real.Artifact", "Real.Artifact"] } });
  });

  const usesGoogle = [
    "from google.adk.tools import ToolContext",
    "from google.genai import types",
    "import google.protobuf",
    "def run(): return {",
    "  'protobuf': google.protobuf.REAL,",
    "  'adk': getattr(ToolContext, 'REAL', 'stand-in'),",
    "  'genai': types.Type.STRING,",
    "}",
  ].join("\n");
  const protobuf = { "google/protobuf/__init__.py": "REAL = 'protobuf'\n" };
  const fromStandIns = { protobuf: "protobuf", adk: "stand-in", genai: "STRING" };

  test.for<[how: string, files: Record<string, string>]>([
    ["without a file of its own", {}],
    ["with one", { "google/__init__.py": "" }],
    [
      "with one that looks for its parts",
      {
        "google/__init__.py":
          "from pkgutil import extend_path\n__path__ = extend_path(__path__, __name__)\n",
      },
    ],
  ])("a package `google` %s leaves room for the rest", async ([, files]) => {
    expect(await resultOf(usesGoogle, { ...protobuf, ...files })).toEqual(fromStandIns);
  });

  test("a package `google` that has one of the two", async () => {
    const files = {
      ...protobuf,
      "google/adk/__init__.py": "",
      "google/adk/tools.py": "class ToolContext: REAL = 'adk'\n",
    };
    expect(await resultOf(usesGoogle, files)).toEqual({ ...fromStandIns, adk: "adk" });
  });

  test("and is told that it is in a sandbox, where it has to import less", async () => {
    const source = "import os\ndef run(): return {'light': os.environ['_SAM_SANDBOX_LIGHT']}\n";
    expect(await resultOf(source)).toEqual({ light: "1" });
  });
});

describe("what a stand-in has not", () => {
  test("is an error that names the stand-in", async () => {
    const source = "from google.genai.types import Part\ndef run(): return {}\n";
    expect(await resultOf(source)).toBe(
      'Module "tool" cannot be imported: ImportError: ' +
        "cannot import name 'Part' from 'google.genai.types' (stand_ins/google/genai/types.py)",
    );
  });

  test("is missing as any module is", async () => {
    const source = "import google.cloud\ndef run(): return {}\n";
    expect(await resultOf(source)).toBe(
      "Module \"tool\" cannot be imported: ModuleNotFoundError: No module named 'google.cloud'",
    );
  });
});

const usualMethod: readonly string[] = ["spawn"];
const otherMethod: readonly string[] = ["fork", "forkserver"];
const showMethod = async (method: string) => {
  const source = [
    "from solace_agent_mesh.agent.tools import ToolResult",
    "def greet(name): return ToolResult.ok(name)",
    "def run():",
    "  import multiprocessing",
    `  with multiprocessing.get_context('${method}').Pool(1) as pool:`,
    "    return pool.apply(greet, ('Ann',))",
  ].join("\n");
  expect(await resultOf(source)).toMatchObject({ message: "Ann" });
};

test.for(usualMethod)("processes of multiprocessing that %s find the stand-ins", showMethod);
test.for(otherMethod)(
  "processes of multiprocessing that %s find the stand-ins",
  { tags: "full" },
  showMethod,
);

test("a tool can be tried as a function with the stand-ins on the path", async () => {
  const code = [
    "import asyncio",
    "from secure_tool_runtime import ToolContext, ToolContextFacade, ToolResult",
    "from solace_agent_mesh.agent.utils import ToolContextFacade as StandIn",
    "async def tool(ctx: StandIn): return ToolResult.ok(f'{await ctx.list_artifacts()}')",
    "print(asyncio.run(tool(ToolContextFacade(ToolContext()))).message)",
  ].join("\n");
  const env = { PYTHONPATH: `${runnerDir}:${runnerDir}/stand_ins` };
  const { stdout } = await promisify(execFile)(python, ["-B", "-c", code], { env });
  expect(stdout).toBe("[]\n");
});

test("the worker's own package gives its names on demand", async () => {
  const names = [
    "Artifact",
    "ArtifactTypeInfo",
    "DataDisposition",
    "DataObject",
    "DynamicTool",
    "DynamicToolProvider",
    "ToolContext",
    "ToolContextFacade",
    "ToolError",
    "ToolResult",
    "get_artifact_info",
    "is_artifact_type",
  ];
  const source = [
    `from secure_tool_runtime import ${names.join(", ")}`,
    `def run(): return {"names": [each.__name__ for each in (${names.join(", ")})]}`,
  ].join("\n");
  expect(await resultOf(source)).toEqual({ names });
  const unknown = "from secure_tool_runtime import Part\ndef run(): return {}\n";
  expect(await resultOf(unknown)).toContain("cannot import name 'Part'");
});
