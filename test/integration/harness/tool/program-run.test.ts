/**
 * `harness program run`: a program of a file, in its sandbox and without a broker.
 */
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createPassableDirectory } from "../../../../harness/temporary.ts";
import { type CliResult, runCli } from "../cli-process.ts";

const files: Readonly<Record<string, string>> = {
  "shop.py": `
from resource import RLIMIT_NOFILE, getrlimit

async def report(ctx, region):
    return {"rows": [dict(await ctx.tools.shop.query(region=region))]}

def query(region):
    return {"region": region}

def limit():
    return {"files": getrlimit(RLIMIT_NOFILE)[0]}

async def strict(ctx):
    return {"own": limit()["files"], "called": (await ctx.tools.limit())["files"]}
`,
  "manifest.yaml": `version: 1
tools:
  query: { module: shop, function: query, namespace: shop, allowed_callers: [programmatic] }
  limit: { module: shop, function: limit, allowed_callers: [programmatic] }
  strict:
    module: shop
    function: strict
    sandbox_profile: restrictive
    gateway: { tools: [limit] }
  report:
    module: shop
    function: report
    allowed_callers: [programmatic]
    gateway: { tools: ["shop:*"] }
`,
  "calls.py": `
print("calling", flush=True)
schema = await tools.describe("shop:query", level="schema")
display({"inputs": inputs, "parameters": list(schema["parameters"]["properties"])})
try:
    await tools.call("nowhere")
except Exception as error:
    refused = error.code
__out = {"refused": refused, **await tools.report(region=inputs["region"])}
`,
  "fails.ts": `const fails = (value: { no: string }): string => value.no.length;
fails(JSON.parse("{}"));
`,
  "program.rb": "",
};

let home: Awaited<ReturnType<typeof createPassableDirectory>>;
beforeAll(async () => {
  home = await createPassableDirectory("str-program-test-");
  for (const [name, text] of Object.entries(files)) await writeFile(join(home.path, name), text);
});
afterAll(() => home[Symbol.asyncDispose]());

const programRun = (file: string, ...args: readonly string[]): Promise<CliResult> =>
  runCli(["program", "run", join(home.path, file), ...args]);

test("a program's value, what it prints, and its calls as a tree are shown", async () => {
  const inputs = '{"region": "West"}';
  const { exitCode, stdout, stderr } = await programRun(
    ...(["calls.py", "--with", home.path, "--inputs", inputs] as const),
  );
  expect({ exitCode, stderr }).toMatchObject({ exitCode: 0 });
  expect(JSON.parse(stdout)).toEqual({ refused: "NOT_ALLOWED", rows: [{ region: "West" }] });
  expect(stderr).toContain("stdout: calling\n");
  expect(stderr).toContain('display: {"inputs":{"region":"West"},"parameters":["region"]}\n');
  const calls = [...stderr.matchAll(/^ +\d+ +\d+  (\S+) +?( {0,2}\S+)$/gm)];
  expect(calls.map(([, outcome, tool]) => [outcome, tool?.trim()])).toEqual([
    ["NOT_ALLOWED", "nowhere"],
    ["ok", "report"],
    ["ok", "shop:query"],
  ]);
  const columns = ["nowhere", "report", "shop:query"].map((tool) => {
    return stderr
      .split("\n")
      .find((line) => line.endsWith(` ${tool}`))
      ?.indexOf(tool);
  });
  expect(columns).toEqual([columns[0], columns[0], (columns[0] ?? 0) + 2]);
  expect(stderr).toMatch(/calls\.py took \d+ ms as program\n$/);
});

test(
  "a called tool has the profile of its own entry, whatever that of the calling one",
  { tags: "full" },
  async () => {
    const { stdout } = await runCli(["tool", "run", home.path, "--tool", "strict"]);
    expect(JSON.parse(stdout)).toEqual({ own: 128, called: 512 });
  },
);

const python = { module: "shop.py", code: "def one():\n    return {}\n" };
const node = { module: "shop.js", code: "export const one = () => ({});\n" };

test.each([
  { language: "python", ...python, program: "two.ts", command: "prompt" },
  { language: "node", ...node, program: "two.py", command: "stubs" },
])(
  "programs of all languages run beside tools in $language only",
  { tags: "full" },
  async (beside) => {
    const { language, module, code, program, command } = beside;
    const directory = join(home.path, `${language}-only`);
    await mkdir(join(directory, language), { recursive: true });
    await writeFile(join(directory, language, module), code);
    const tool = `{ runtime: ${language}, module: ${module.replace(".py", "")}, function: one, allowed_callers: [programmatic] }`;
    const entry = "{ runtime: code, gateway: { tools: [one] } }";
    const manifest = `version: 1\ntools:\n  one: ${tool}\n  mine: ${entry}\n`;
    await writeFile(join(directory, "manifest.yaml"), manifest);
    await writeFile(join(home.path, program), "__out = 2");
    const ran = await programRun(program, "--with", directory);
    expect(ran, ran.stderr).toMatchObject({ exitCode: 0, stdout: "2\n" });
    const more = command === "stubs" ? ["--out", join(home.path, "types")] : [];
    const shown = await runCli(["tool", command, "mine", "--dir", directory, ...more]);
    expect(shown, shown.stderr).toMatchObject({ exitCode: 0, stderr: "" });
    expect((await readdir(directory)).sort()).toEqual(["manifest.yaml", language]);
  },
);

test("a program that fails has the place in its file, and the exit code 1", async () => {
  const { exitCode, stdout, stderr } = await programRun("fails.ts");
  expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: "" });
  expect(stderr).toMatch(/^EXECUTION_ERROR: Program threw TypeError: .* \(line 1\)$/m);
  expect(stderr).toMatch(/^at .*\/fails\.ts:1:\d+\n  line 1, column \d+, in fails: const fails/m);
  expect(stderr).toMatch(/^  line 2, column 1: fails\(JSON/m);
});

test("a file that is no program is refused", async () => {
  const ruby = await programRun("program.rb");
  expect(ruby).toMatchObject({ exitCode: 2, stdout: "" });
  expect(ruby.stderr).toContain("its name must end in .py, .ts, .mts, .js, .mjs");
  const missing = await programRun("missing.py");
  expect(missing).toMatchObject({ exitCode: 2, stdout: "" });
  expect(missing.stderr).toMatch(/missing\.py cannot be read: ENOENT/);
});
