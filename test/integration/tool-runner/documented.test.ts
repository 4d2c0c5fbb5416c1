/**
 * What docs/write-a-python-tool.md and docs/python-tools.md say of tools is so: their examples run,
 * their tables list what there is.
 */
import { execFile } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  forkRunners,
  python,
  removeWorkDirs,
  type RunOptions,
  runTool,
  runnerDir,
} from "./run-tool.ts";

forkRunners();

const [guide = "", reference = ""] = ["write-a-python-tool.md", "python-tools.md"].map((page) =>
  readFileSync(join(import.meta.dirname, "../../../docs", page), "utf8"),
);
const examples = [...`${guide}\n${reference}`.matchAll(/^```python\n(.*?)^```$/gms)].map(
  ([, source = ""]) => source,
);

let toolsDir: string;

beforeAll(async () => {
  toolsDir = await mkdtemp(join(tmpdir(), "documented-"));
  for (const [index, source] of examples.entries()) {
    await writeFile(join(toolsDir, `example_${index}.py`), source);
  }
});
afterAll(async () => {
  await removeWorkDirs();
  await rm(toolsDir, { recursive: true });
});

/** Runs the example that defines a name. */
async function run(name: string, options: RunOptions): Promise<unknown> {
  const index = examples.findIndex((source) =>
    new RegExp(`^(async )?(def|class) ${name}\\b`, "m").test(source),
  );
  const { document } = await runTool(`example_${index}`, name, { ...options, toolsDir });
  return document;
}

describe("an example runs:", () => {
  const report = { filename: "q3.csv", content: "a,b\n1,2\n" };

  test("count_words", async () => {
    expect(await run("count_words", { args: { text: "one two" } })).toMatchObject({
      result: { status: "success", count: 2 },
    });
  });

  test("first_line", async () => {
    const options = { args: { filename: "q3.csv" }, artifacts: { filename: report } };
    expect(await run("first_line", options)).toMatchObject({ result: { line: "a,b" } });
  });

  test("count_lines", async () => {
    const artifacts = { report, "others[0]": { filename: "one.txt", content: "1\n" } };
    const args = { report: "q3.csv", others: ["one.txt"] };
    expect(await run("count_lines", { args, artifacts })).toMatchObject({
      result: { "q3.csv": 2, "one.txt": 1 },
    });
    expect(await run("count_lines", { artifacts: { report } })).toMatchObject({
      result: { "q3.csv": 2 },
    });
  });

  test("add_up", async () => {
    expect(await run("add_up", { args: { numbers: [1, "x", 2] } })).toMatchObject({
      result: { total: 3 },
    });
  });

  test("report", async () => {
    expect(await run("report", { args: { year: 2026 } })).toEqual({
      result: {
        status: "success",
        message: "The report of 2026",
        data: { pages: 3 },
        data_objects: [
          expect.objectContaining({ name: "rows.csv", content: "a,b", disposition: "inline" }),
        ],
        error_code: null,
      },
      outputs: { "report.pdf": { mime_type: "application/pdf", description: "The report" } },
    });
  });

  test("Greeting", async () => {
    const members = { function: null, class_name: "Greeting" };
    expect(await run("Greeting", { args: { name: "Ann" }, members })).toMatchObject({
      result: { greeting: "Hello, Ann!" },
    });
  });

  test("forecast", async () => {
    expect(await run("forecast", { args: { city: "Rome" } })).toMatchObject({
      result: { city: "Rome", high: 21 },
    });
  });

  test("wait_for", async () => {
    expect(await run("wait_for", { args: { seconds: 0 } })).toMatchObject({
      result: { exit_code: 0, is_cancelled: false },
    });
  });

  test("and there are no others", () => {
    expect(examples).toHaveLength(8);
  });
});

/** The rows of the first table below a heading, as cells. */
function tableBelow(heading: string): readonly (readonly string[])[] {
  const [, section = ""] = reference.split(`\n${heading}\n`);
  const [table = ""] = /^\|.*(?:\n\|.*)*/m.exec(section) ?? [];
  return table
    .split("\n")
    .slice(2)
    .map((row) => row.split(" | ").map((cell) => cell.replace(/^\| | \|$/g, "")));
}

function names(cell: string): readonly string[] {
  return [...cell.matchAll(/`(?:await )?([^`(]+)[^`]*`/g)].map(([, name = ""]) => name);
}

async function ask(code: string): Promise<unknown> {
  const env = { PYTHONPATH: `${runnerDir}:${runnerDir}/stand_ins` };
  const { stdout } = await promisify(execFile)(python, ["-B", "-c", code], { env });
  return JSON.parse(stdout);
}

test("the table of the asynchronous context has each of its members", async () => {
  const members = await ask(`
import json
from secure_tool_runtime import ToolContextFacade
print(json.dumps(sorted(name for name in dir(ToolContextFacade()) if not name.startswith("_"))))`);
  const documented = tableBelow("## The asynchronous context").flatMap(([cell = ""]) =>
    names(cell),
  );
  expect(documented.toSorted()).toEqual(members);
});

describe("the table of the stand-ins", () => {
  const rows = tableBelow("## Tools of Solace Agent Mesh").map(([module = "", has = ""]) => ({
    module: names(module)[0]!,
    has: names(has),
  }));

  test("has each of them", () => {
    const modules = globSync("**/*.py", { cwd: join(runnerDir, "stand_ins") }).map((path) =>
      path.replace(/(\/__init__)?\.py$/, "").replaceAll("/", "."),
    );
    expect(rows.map(({ module }) => module).toSorted()).toEqual(modules.toSorted());
  });

  test("has the names that they have", async () => {
    const found = await ask(`
import importlib, json
modules = json.loads(${JSON.stringify(JSON.stringify(rows.map(({ module }) => module)))})
public = [importlib.import_module(module) for module in modules]
print(json.dumps({
    module.__name__: [
        name for name, value in vars(module).items()
        if name[0] != "_" and (callable(value) or name.isupper())
    ]
    for module in public
}))`);
    const documented = Object.fromEntries(rows.map(({ module, has }) => [module, has.toSorted()]));
    const there = Object.entries(found as Record<string, string[]>);
    expect(Object.fromEntries(there.map(([name, has]) => [name, has.toSorted()]))).toEqual(
      documented,
    );
  });
});
