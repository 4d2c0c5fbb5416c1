/**
 * The wheel for authors of Python tools, in an environment of their own: tests call tools, and mypy
 * and pyright accept the examples in their strict modes.
 *
 * @module-tag full
 */
import { cp, mkdir, readFile, writeFile } from "node:fs/promises";
import { delimiter, dirname, join } from "node:path";
import { type TestContext, afterAll, beforeAll, describe, expect, test } from "vitest";
import { pythonShapes } from "../../../harness/tool/new/shapes.ts";
import { pythonScaffold } from "../../../harness/tool/new/templates/python.ts";
import { type PythonProject, createPythonProject } from "../../support/authors/python-project.ts";
import { installedOnce, installedOrSkipped } from "../../support/installed-once.ts";
import { pypiPackages } from "../../support/pypi-packages.ts";
import { type Ending, ownNode, run, userEnvironment } from "../../package/processes.ts";

const checkout = join(import.meta.dirname, "../../..");
const mypyVersion = "2.4.1";
const pyrightVersion = "1.1.400";
const installMs = 300_000;

/** What an author writes: with all that the package offers, and with a mistake for each checker. */
const everything = `
from typing import Any

from secure_tool_runtime import (
    Artifact, Cancellation, DataDisposition, DataObject, DynamicTool, ToolCallError, ToolContext, ToolContextFacade,
    ToolResult, Tools, tools,
)

def reports(ctx: ToolContext) -> ToolResult:
    left: "float | None" = ctx.time_left()
    ctx.log("info", ctx.user_id.upper(), left=left)
    content = ctx.load_artifact("input")
    data = DataObject(name="a", content=content or "", disposition=DataDisposition.INLINE)
    return ToolResult.ok("fine", data={"a": 1}, data_objects=[data])

def polls(ctx: ToolContext) -> "dict[str, bool]":
    ctx.on_cancel(lambda: print("cleaning up"))
    return {"cancelled": ctx.cancelled}

def checks() -> None:
    cancellation = Cancellation()
    cancellation.cancel()
    assert polls(ToolContext(cancellation=cancellation)) == {"cancelled": True}

async def first_line(filename: str, ctx: ToolContextFacade) -> "dict[str, object]":
    text = await ctx.load_artifact(filename, as_text=True)
    content = await ctx.load_artifact(filename)
    return {"line": text.split("\\n")[0], "bytes": content.hex()}

async def sums(region: str, ctx: ToolContext) -> "dict[str, object]":
    try:
        rows = await ctx.tools.call("sales:query", {"region": region})
        rows = await tools.sales.query(region=region)
    except ToolCallError as error:
        return {"code": error.code, "again": error.retryable, **error.data}
    last = await ctx.tools.chain([{"tool": "a:b"}, {"tool": "c", "use_previous": True}])
    names: "list[str]" = [each["filename"] for each in [*rows.artifacts, *last.artifacts]]
    content: bytes = b"".join([await ctx.tools.load_artifact(name) for name in names])
    return {"rows": rows["rows"], "steps": last.steps, "bytes": content.hex()}

def searches(ctx: ToolContextFacade) -> "dict[str, object]":
    sync = ctx.tools.sync
    ids: "list[str]" = [each["id"] for each in sync.search("convert csv", limit=5)]
    return {"ids": ids, "examples": sync.examples(ids[0], max=2), **sync.echo(text="t")}

class Recorded(Tools):
    pass

def checks_calls() -> None:
    assert searches(ToolContextFacade(ToolContext(tools=Recorded()))) == {}

def count(report: Artifact, others: "list[Artifact]") -> "dict[str, int]":
    return {each.filename: each.as_text().count("\\n") for each in (report, *others)}

class Greeting(DynamicTool):
    ctx_facade_param_name = "ctx"

    async def _run_async_impl(
        self, args: "dict[str, Any]", tool_context: object = None, credential: "str | None" = None
    ) -> "dict[str, object]":
        return {"greeting": f"{self.tool_config.get('prefix')} {args['name']}"}
`;
const mistakes = `
from secure_tool_runtime import ToolContext, ToolResult

def run(ctx: ToolContext) -> ToolResult:
    ctx.send_status(1)
    ctx.save_artifact("a.txt", "text")
    ctx.tools.sync.search("words", limit="5")
    return ToolResult.ok(5)
`;

let project: PythonProject;
const at = (name: string): string => join(project.directory, name);

beforeAll(async () => {
  project = await createPythonProject();
  await mkdir(at("tools"));
  await cp(join(checkout, "examples/tools/python/example_tools.py"), at("tools/example_tools.py"));
  for (const shape of pythonShapes) {
    const names = { file: `made_${shape}`, callable: "Made" };
    const [tool] = pythonScaffold(shape, "made", names).files;
    await writeFile(at(join("tools", tool!.name)), tool!.text);
  }
  await writeFile(at("tools/everything.py"), everything);
  await mkdir(at("wrong"));
  await writeFile(at("wrong/mistakes.py"), mistakes);
});
afterAll(() => project[Symbol.asyncDispose]());

test("a test calls a tool with a context", async () => {
  const program = `
from example_tools import echo_tool, process_file
from secure_tool_runtime import ToolContext
assert echo_tool(ToolContext(), "hi")["echoed_message"] == "hi"
ctx = ToolContext(output_dir=".", artifact_paths={"input_file": "example_tools.py"})
print(process_file(ctx, "example_tools.py")["output_artifact"], ctx.list_output_artifacts())`;
  const ending = await run(project.python, ["-c", program], { cwd: at("tools") });
  expect(ending).toMatchObject({ status: 0, stderr: "" });
  expect(ending.stdout).toMatch(/^summary\.txt \[.*'summary\.txt'.*\]\n$/);
});

test("so does the test in the guide", async () => {
  const guide = await readFile(join(checkout, "docs/write-a-python-tool.md"), "utf8");
  const [, example = ""] = /^```py\n(.*?)^```$/ms.exec(guide) ?? [];
  const names = { file: "count_words", callable: "count_words" };
  const [tool] = pythonScaffold("function", "count_words", names).files;
  await mkdir(at("guide"));
  await writeFile(at("guide/count_words.py"), tool!.text);
  await writeFile(at("guide/test_guide.py"), `${example}\ntest_counts(".")\nprint("ran")\n`);
  const ending = await run(project.python, ["test_guide.py"], { cwd: at("guide") });
  expect(ending).toMatchObject({ status: 0, stdout: "ran\n", stderr: "" });
});

describe("mypy in its strict mode", () => {
  async function mypy(context: TestContext, directory: string): Promise<Ending> {
    const packages = await pypiPackages(context, [`mypy==${mypyVersion}`]);
    const options = ["--strict", "--python-executable", project.python, "--cache-dir", at("cache")];
    const argv = ["-m", "mypy", ...options, directory];
    return run("/usr/bin/python3", argv, {
      cwd: project.directory,
      env: userEnvironment({ PYTHONPATH: packages }),
    });
  }

  test("accepts the examples and what tool new makes", async (context) => {
    expect(await mypy(context, "tools")).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(/^Success: no issues found in \d+ source files$/m) as string,
    });
  });

  test("finds mistakes", async (context) => {
    const { status, stdout } = await mypy(context, "wrong");
    expect({ status, lines: stdout.match(/^wrong\/mistakes\.py:\d+/gm) }).toEqual({
      status: 1,
      lines: ["5", "6", "7", "8"].map((line) => `wrong/mistakes.py:${line}`),
    });
  });
});

describe("pyright in its strict mode", () => {
  async function pyright(context: TestContext, ...argv: readonly string[]): Promise<Ending> {
    const installing = installedOnce({
      title: `pyright ${pyrightVersion}`,
      key: ["pyright", pyrightVersion],
      timeoutMs: installMs,
      command: (directory) => [
        ...["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts"],
        ...["--prefix", directory, `pyright@${pyrightVersion}`],
      ],
    });
    const directory = await installedOrSkipped(context, installing);
    const program = join(directory, "node_modules", "pyright", "index.js");
    // As where the environment is activated: some of its commands know no option for it.
    const path = [dirname(project.python), process.env["PATH"]].join(delimiter);
    const env = userEnvironment({ PATH: path, VIRTUAL_ENV: at("venv") });
    return run(ownNode, [program, ...argv], { cwd: project.directory, env });
  }

  const configured = async (directory: string): Promise<string> => {
    const path = at(`${directory}.json`);
    const config = { typeCheckingMode: "strict", include: [directory] };
    await writeFile(path, JSON.stringify(config));
    return path;
  };

  test("accepts the examples and what tool new makes", async (context) => {
    const { status, stdout } = await pyright(context, "--project", await configured("tools"));
    expect(stdout).toMatch(/^0 errors, 0 warnings/m);
    expect(status).toBe(0);
  });

  test("finds mistakes", async (context) => {
    const { stdout } = await pyright(context, "--project", await configured("wrong"));
    expect(stdout).toMatch(/^4 errors/m);
  });

  test("knows the type of everything that the package exports", async (context) => {
    const options = ["--ignoreexternal", "--verifytypes", "secure_tool_runtime"];
    const { stdout } = await pyright(context, ...options);
    expect(stdout).toContain("Type completeness score: 100%");
  });
});
