/**
 * `harness tool stubs` and `harness tool prompt`: what the tools in an entry's scope are, by the
 * manifest and by their code.
 */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parse } from "yaml";
import { createPassableDirectory } from "../../../../harness/temporary.ts";
import { maxPromptLength } from "../../../../worker/gateway/stubs/prompt.ts";
import { runCli } from "../cli-process.ts";

const files: Readonly<Record<string, string>> = {
  "sales.py": `
from typing import Literal

def query(region: Literal["West", "East"], limit: int = 3) -> dict:
    """Rows of sales."""

async def report(region: str, ctx):
    """Reports sales."""
`,
  "upper.js": "export const upper = ({ text }) => ({ text });\n",
  "mine_tools.d.ts": "// Mine.\n",
  "manifest.yaml": `version: 1
tools:
  query: { module: sales, function: query, namespace: sales, allowed_callers: [programmatic] }
  upper:
    runtime: node
    module: upper.js
    function: upper
    allowed_callers: [direct, programmatic]
    description: "Makes \\u202ecapitals."
    parameters: { type: object, properties: { text: { type: string } }, required: [text] }
    output_schema: { type: object, properties: { text: { type: string } }, required: [text] }
  secret: { module: sales, function: query }
  report:
    module: sales
    function: report
    gateway: { tools: ["sales:*", upper, secret], remote: [weather] }
  mine:
    runtime: code
    languages: [javascript, python]
    gateway: { tools: ["sales:*", upper], remote: [weather] }
`,
};

let home: Awaited<ReturnType<typeof createPassableDirectory>>;
beforeAll(async () => {
  home = await createPassableDirectory("str-stubs-test-");
  for (const [name, text] of Object.entries(files)) await writeFile(join(home.path, name), text);
});
afterAll(() => home[Symbol.asyncDispose]());

test("stubs have the tools in scope, as their code and the manifest describe them", async () => {
  const out = join(home.path, "types", "python");
  const python = await runCli(["tool", "stubs", "report", "--dir", home.path, "--out", out]);
  const path = join(out, "report_tools.pyi");
  expect(python).toEqual({
    exitCode: 0,
    stdout: `${path}\n`,
    stderr: "secret: the manifest serves no such tool that programs may call\n",
  });
  const stubs = await readFile(path, "utf8");
  expect(stubs).toContain(
    'async def query(self, *, region: Literal["West"] | Literal["East"], limit: int = ...)',
  );
  expect(stubs).toMatch(/async def upper\(self, \*, text: str, \*\*__rest: Any\) -> _T2_1/);
  expect(stubs).toContain('"Makes capitals."');
  expect(stubs).not.toContain("secret");
});

test("stubs replace stubs, and nothing else", { tags: "full" }, async () => {
  const stubs = (...args: readonly string[]) =>
    runCli(["tool", "stubs", "mine", "--dir", home.path, ...args]);
  const out = join(home.path, "again");
  const paths = [join(out, "mine_tools.d.ts"), join(out, "mine_tools.pyi")];
  const written = { exitCode: 0, stdout: `${paths.join("\n")}\n`, stderr: "" };
  expect(await stubs("--out", out)).toEqual(written);
  expect(await stubs("--out", out)).toEqual(written);
  const declarations = await readFile(join(out, "mine_tools.d.ts"), "utf8");
  expect(declarations).toContain('"upper": { text: string; [name: string]: unknown; };');
  const refused = await stubs("--out", home.path);
  expect(refused).toMatchObject({ exitCode: 2, stdout: "" });
  expect(refused.stderr).toContain("mine_tools.d.ts is there and has no stubs");
  expect(await readFile(join(home.path, "mine_tools.d.ts"), "utf8")).toBe("// Mine.\n");
  const unwritable = await stubs("--out", join(home.path, "sales.py"));
  expect(unwritable).toMatchObject({ exitCode: 1, stdout: "" });
  expect(unwritable.stderr).toMatch(/^error: .*mine_tools\.d\.ts cannot be written: ENOTDIR/m);
});

test("a prompt is a member of an agent's YAML, with a line for each tool", async () => {
  const prompt = await runCli(["tool", "prompt", "mine", "--dir", home.path]);
  expect(prompt.exitCode).toBe(0);
  const { tool_description: text, ...others } = parse(prompt.stdout) as Record<string, string>;
  expect(others).toEqual({});
  expect(text?.length).toBeLessThanOrEqual(maxPromptLength);
  expect(text?.split("\n").filter((line) => line.startsWith("- "))).toEqual([
    '- sales:query(region, limit?): "Rows of sales."',
    '- upper(text): "Makes capitals."',
    "- weather(…)",
  ]);
  expect(text).toMatch(/^Runs a program in a sandbox\..*\nA program has `inputs`/);
  expect(text).toContain("Python: `result = await tools.call(");
  expect(text).toContain("JavaScript: `const result = await tools.call(");
  expect(text).not.toContain("TypeScript");
});

test("an entry without a gateway is refused, with the names of others", async () => {
  const result = await runCli(["tool", "prompt", "query", "--dir", home.path]);
  const problem = 'query has no "gateway"; entries that call tools: report, mine';
  expect(result).toMatchObject({ exitCode: 2, stdout: "", stderr: `error: ${problem}\n` });
  const nothing = await runCli(["tool", "stubs", "report", "--dir", join(home.path, "types")]);
  expect(nothing).toMatchObject({ exitCode: 2, stderr: expect.stringContaining("no manifest") });
});
