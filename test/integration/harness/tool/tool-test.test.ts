/**
 * `harness tool test`: every scaffold passes its test, a broken tool does not and says why, and a
 * file that is no test is refused.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { createPassableDirectory } from "../../../../harness/temporary.ts";
import { shapesOf } from "../../../../harness/tool/new/shapes.ts";
import { type CliResult, runCli } from "../cli-process.ts";

const timeoutMs = 120_000;
const shapes = Object.entries(shapesOf).flatMap(([runtime, names]) =>
  names.map((shape) => ({ runtime, shape, tool: `${runtime}-${shape}` })),
);
/** They run as they are made. */
const unbuilt = shapes.filter(({ shape }) => shape !== "go");

/** The directory of a manifest. */
let tools: string;
beforeEach(async () => {
  const directory = await createPassableDirectory("str-tool-test-test-");
  onTestFinished(() => directory[Symbol.asyncDispose]());
  tools = join(directory.path, "tools");
});

const toolTest = (...args: readonly string[]): Promise<CliResult> =>
  runCli(["tool", "test", tools, ...args], { PACKAGE_POLICY: "check" });

async function toolNew({ runtime, shape, tool }: (typeof shapes)[number]): Promise<string> {
  const options = ["--runtime", runtime, "--shape", shape, "--dir", tools];
  const { exitCode, stdout, stderr } = await runCli(["tool", "new", tool, ...options]);
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
  return stdout;
}

/** Runs the new tool by the command that `tool new` printed. */
function runAsPrinted(printed: string): void {
  const [, command = ""] = /^Run it once:\n {2}(.*)$/m.exec(printed) ?? [];
  const { stdout, stderr } = spawnSync("sh", ["-c", command], { encoding: "utf8" });
  expect({ command, stdout, stderr }).toMatchObject({
    stdout: expect.stringMatching(/"status": "success"/) as string,
  });
}

async function writeFiles(files: Readonly<Record<string, string>>): Promise<void> {
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(tools, name)), { recursive: true });
    await writeFile(join(tools, name), text);
  }
}

async function change(name: string, from: string | RegExp, to: string): Promise<void> {
  const path = join(tools, name);
  const before = await readFile(path, "utf8");
  const after = before.replace(from, to);
  expect(after).not.toBe(before);
  await writeFile(path, after);
}

describe("harness tool test", { timeout: timeoutMs }, () => {
  test(
    "passes every shape that tool new makes, and fails a broken one with its traceback",
    { tags: "full" },
    async () => {
      for (const shape of unbuilt) runAsPrinted(await toolNew(shape));
      // A provider has a case more.
      const all = 2 * unbuilt.length + 1;
      const passed = await toolTest();
      expect(passed).toMatchObject({ exitCode: 0, stderr: "" });
      expect(passed.stdout).toMatch(new RegExp(`^${all} passed, 0 failed, 0 skipped\n$`, "m"));

      await change("python/python_class.py", "text.split()", 'text["x"]');
      await change("python/python_function.py", "len(words)}", "len(words) + 1}");
      await change("node/node-function.ts", "words.length", "(words as any).x.y");
      const failed = await toolTest();
      expect(failed.exitCode).toBe(1);
      expect(failed.stdout).toMatch(new RegExp(`^${all - 3} passed, 3 failed, 0 skipped\n$`, "m"));
      expect(failed.stdout).toContain(`    result.count: expected 3, found 4\n`);
      expect(failed.stdout).toMatch(
        /^failed {2}python-class: .*\n {4}failed: EXECUTION_ERROR: Tool raised TypeError: .*\n {4}stderr: Traceback .*\n {4}stderr: {3}File ".*\/tools\/python\/python_class\.py", line 26, in _run_async_impl\n {4}stderr: {5}words = text\["x"\]\n/m,
      );
      expect(failed.stdout).toMatch(
        /^failed {2}node-function: .*\n.*\n {4}stderr: TypeError: .*\n {4}stderr: {5}at nodeFunction \(.*\/tools\/node\/node-function\.ts:12:\d+\)\n {4}stderr: {9}return \{ status: "success", count: \(words as any\)\.x\.y \};\n/m,
      );
    },
  );

  test(
    "passes a tool in Go once it is built by the printed command",
    { tags: "full" },
    async ({ skip }) => {
      if (spawnSync("go", ["version"]).status !== 0) skip("there is no Go");
      const stdout = await toolNew(shapes.find(({ shape }) => shape === "go")!);
      const before = await toolTest();
      expect(before.stdout).toMatch(/^0 passed, 2 failed, 0 skipped$/m);
      const [, build = ""] = /^ {2}(.* go build .*)$/m.exec(stdout) ?? [];
      execFileSync("sh", ["-c", build], { stdio: "ignore" });
      const after = await toolTest();
      expect(after).toMatchObject({ exitCode: 0 });
      expect(after.stdout).toMatch(/^2 passed, 0 failed, 0 skipped$/m);
      runAsPrinted(stdout);
    },
  );

  test("passes the examples", { tags: "full" }, async () => {
    const examples = join(import.meta.dirname, "../../../../examples/tools");
    const { exitCode, stdout } = await runCli(["tool", "test", examples]);
    expect({ exitCode, stdout }).toEqual({
      exitCode: 0,
      stdout: expect.stringMatching(/^[1-9]\d* passed, 0 failed, 0 skipped\n$/m) as string,
    });
  });

  test(
    "gives a tool its artifacts and configuration, and compares what it makes",
    { tags: "full" },
    async () => {
      await writeFiles({
        "manifest.yaml": `version: 1
tools:
  joins: { module: joins, function: joins, sandbox_profile: permissive }
  needs: { module: joins, function: joins, package: no-such-package }
`,
        "joins.py": `
def joins(ctx, one, many, tool_config):
    texts = [ctx.load_artifact_text(name) for name in ("one", "many[0]", "many[1]")]
    ctx.save_artifact_text("joined.txt", "\\n".join(texts))
    ctx.report_progress(1, 2)
    return {"one": one, "many": many, "key": tool_config["key"], "rest": {"a": 1, "b": [1]}}
`,
        "inputs/a.txt": "from a file",
        "nested/joins.test.yaml": `
tool: joins
cases:
  - name: fine
    artifacts:
      one: ../inputs/a.txt
      many: [{ filename: b.txt, text: b }, { filename: c.txt, text: c }]
    config: { key: s3cret }
    expect:
      result_includes: { one: a.txt, many: [b.txt, c.txt], rest: { b: [1] } }
      artifacts: { joined.txt: "from a file\\nb\\nc" }
      statuses: [1 of 2]
  - name: not as expected
    artifacts: { one: { filename: a.txt, text: "\\e[2J" }, many: [../inputs/a.txt, ../inputs/a.txt] }
    config: { key: k }
    expect:
      result: { one: a.txt, many: [], key: 1 }
      artifacts: { joined.txt: "\\e[2J\\nb", other.txt: "" }
      statuses: [2 of 2]
  - name: no error
    artifacts: { one: ../inputs/a.txt, many: [../inputs/a.txt, ../inputs/a.txt] }
    config: { key: k }
    expect: { error: TOOL_ERROR }
  - name: another error
    expect: { error: { code: TOOL_ERROR, message: "no" } }
  - { name: an error of this code, expect: { error: INVALID_REQUEST } }
  - { name: later, skip: not yet, expect: {} }
`,
        "needs.test.yaml": "{ tool: needs, cases: [{ name: any, expect: {} }] }",
      });
      const { exitCode, stdout } = await toolTest();
      expect(stdout.replaceAll(/\(\d+ ms\)/g, "(n ms)").replaceAll(/^ {4}std.*\n/gm, "")).toBe(
        `failed  needs: any
    the tool is not served here: package "no-such-package" is not installed
passed  joins: fine (n ms)
failed  joins: not as expected (n ms)
    result.many: expected [], found ["a.txt","a.txt"]
    result.key: expected 1, found "k"
    result.rest: expected nothing, found {"a":1,"b":[1]}
    artifacts: expected ["joined.txt","other.txt"], found ["joined.txt"]
    artifact joined.txt, line 2: expected "b", found "from a file"
    statuses[0]: expected "2 of 2", found "1 of 2"
failed  joins: no error (n ms)
    error: expected "TOOL_ERROR", found nothing
failed  joins: another error (n ms)
    error.code: expected "TOOL_ERROR", found "INVALID_REQUEST"
    error.message: expected "no", found "Invalid request: params.args.one: missing, expected a value"
passed  joins: an error of this code (n ms)
skipped joins: later (not yet)
2 passed, 4 failed, 1 skipped
`,
      );
      expect(exitCode).toBe(1);

      const one = await toolTest("--tool", "needs");
      expect(one).toMatchObject({ exitCode: 1 });
      expect(one.stdout).toMatch(/^0 passed, 1 failed, 0 skipped$/m);
    },
  );

  test.for([
    ["cases: [", /a\.test\.yaml:1:9: /],
    ["tool: a\ncases: []\n", /a\.test\.yaml:2:1: cases: /],
    ["tool: a\ncases:\n  - { name: x }\n", /a\.test\.yaml:3:5: case "0": expect: required: a map/],
    [
      "tool: a\ncases:\n  - name: x\n    exspect: {}\n    expect: { result: 1 }\n",
      /a\.test\.yaml:4:5: case "0": exspect: unknown key; .*\n.*a\.test\.yaml:5:23: case "0": expect\.result: expected a map, found 1/,
    ],
  ] as const)("refuses a file that is no test: %j", async ([text, said]) => {
    await writeFiles({ "manifest.yaml": "version: 1\ntools: {}\n", "a.test.yaml": text });
    expect(await toolTest()).toMatchObject({
      exitCode: 2,
      stderr: expect.stringMatching(said) as string,
    });
  });

  test("fails a case whose tool is not in the manifest, and finds no test where there is none", async () => {
    await writeFiles({ "manifest.yaml": "version: 1\ntools: {}\n" });
    expect(await toolTest()).toMatchObject({ exitCode: 2 });
    await writeFiles({ "a.test.yaml": "{ tool: a, cases: [{ name: x, expect: {} }] }" });
    const { exitCode, stdout } = await toolTest();
    expect({ exitCode, stdout }).toEqual({
      exitCode: 1,
      stdout: expect.stringMatching(
        /^failed {2}a: x\n {4}.*no such tool\n0 passed, 1 failed/,
      ) as string,
    });
    expect(await toolTest("--tool", "b")).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('no test of the tool "b"') as string,
    });
  });
});
