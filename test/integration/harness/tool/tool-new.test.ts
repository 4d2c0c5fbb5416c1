/**
 * `harness tool new`: what it makes works at once, by the commands that it prints, and nothing is
 * overwritten.
 */
import { mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { createPassableDirectory } from "../../../../harness/temporary.ts";
import { installTypes, typeCheck } from "../../../support/type-check.ts";
import { CliProcess, type CliResult, runCli, runCliProcess } from "../cli-process.ts";

const timeoutMs = 120_000;
const checkout = join(import.meta.dirname, "../../../..");

/** A developer's directory, which is not in this checkout. */
let project: string;
beforeEach(async () => {
  const directory = await createPassableDirectory("str-tool-new-test-");
  onTestFinished(() => directory[Symbol.asyncDispose]());
  project = directory.path;
});

/** Runs it in that directory. */
async function toolNew(...args: readonly string[]): Promise<CliResult> {
  const before = process.cwd();
  process.chdir(project);
  try {
    return await runCli(["tool", "new", ...args]);
  } finally {
    process.chdir(before);
  }
}

/** Runs a printed command as it stands. */
const type = (command: string): Promise<CliResult> =>
  runCliProcess(["-c", command], { HOME: project }, { cwd: project, command: ["sh"] });

/** The commands that it prints, by what they are for. */
function commandsOf(stdout: string): {
  readonly [name in "serve" | "call" | "run" | "test"]: string;
} & { readonly types: string | undefined } {
  const commands = [...stdout.matchAll(/^ {2}(\S.*)$/gm)].map(([, command = ""]) => command);
  const [test = "", run = "", serve = "", call = "", types] = commands;
  expect([4, 5]).toContain(commands.length);
  return { serve, call, run, test, types };
}

async function filesIn(directory: string): Promise<readonly string[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(directory.length + 1))
    .sort();
}

const made = {
  python: ["python/my_tool.py", "python/my_tool.test.yaml"],
  node: ["node/my-tool.test.yaml", "node/my-tool.ts", "node/package.json", "node/tsconfig.json"],
};

describe("harness tool new", { timeout: timeoutMs }, () => {
  const works = "makes a %s tool that can be tested and run by the commands that it prints";
  test.for(["python", "node"] as const)(works, { tags: "full" }, expectWorking);

  async function expectWorking(runtime: keyof typeof made): Promise<void> {
    const { exitCode, stdout, stderr } = await toolNew("my-tool", "--runtime", runtime);
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
    expect(await filesIn(join(project, "tools"))).toEqual(
      ["manifest.yaml", ...made[runtime]].sort(),
    );
    for (const file of ["manifest.yaml", ...made[runtime]]) {
      expect(stdout).toContain(`created tools/${file}\n`);
    }
    const { test: testCommand, run: runCommand } = commandsOf(stdout);
    const tested = await type(testCommand);
    expect({ ...tested, testCommand }).toMatchObject({ exitCode: 0 });
    expect(tested.stdout).toMatch(/^2 passed, 0 failed, 0 skipped\n$/m);
    const ran = await type(runCommand);
    expect({ ...ran, runCommand }).toMatchObject({ exitCode: 0 });
    expect(JSON.parse(ran.stdout)).toEqual({ status: "success", count: 3 });
  }

  test(
    "says how to serve the tools of a directory with an odd name, and how to call one",
    { tags: "full" },
    async () => {
      await toolNew("first", "--runtime", "python", "--dir", "it's mine");
      const { stdout } = await toolNew("second", "--runtime", "node", "--dir", "it's mine");
      expect(stdout).toContain("extended it's mine/manifest.yaml\n");
      const commands = commandsOf(stdout);
      expect(await type(commands.test)).toMatchObject({ exitCode: 0 });
      expect(await type(commands.run)).toMatchObject({ exitCode: 0 });

      // The usual port may be taken on this machine.
      await using dev = new CliProcess(
        ["-c", `exec ${commands.serve} --port 0`],
        {},
        { cwd: project, command: ["sh"] },
      );
      const [, port = ""] = await dev.said("stdout", /listens on 127\.0\.0\.1:(\d+)/);
      await dev.said("stdout", /The worker serves first, second\./);
      const call = `${commands.call} --port ${port}`;
      for (const command of [call, call.replace("second", "first")]) {
        const called = await type(command);
        expect({ ...called, command }).toMatchObject({ exitCode: 0 });
        expect(JSON.parse(called.stdout)).toEqual({ status: "success", count: 3 });
      }
      dev.child.kill("SIGINT");
      expect((await dev.finished).exitCode).toBe(0);
    },
  );

  test(
    "puts a tool beside the others where they all lie beside their manifest",
    { tags: "full" },
    async () => {
      const directory = join(project, "flat");
      await mkdir(directory);
      await writeFile(join(directory, "manifest.yaml"), "version: 1\ntools: {}\n");
      const run = (...args: string[]): Promise<CliResult> =>
        runCliProcess(["tool", "new", ...args], {}, { cwd: directory });
      const { stdout } = await run("first", "--runtime", "python");
      expect(commandsOf(stdout).serve).toMatch(/harness\.mjs dev$/);
      await run("second", "--runtime", "node", "--dir", ".");
      expect(await filesIn(directory)).toEqual(
        [
          ...["first.py", "first.test.yaml", "manifest.yaml", "package.json"],
          ...["second.test.yaml", "second.ts", "tsconfig.json"],
        ].sort(),
      );
      await using dev = new CliProcess(["dev", "--port", "0"], {}, { cwd: directory });
      await dev.said("stdout", /The worker serves first, second\./);
    },
  );

  test("makes a Node tool that passes tsc with its tsconfig.json", { tags: "full" }, async () => {
    const { stdout } = await toolNew("my-tool", "--runtime", "node");
    const directory = join(project, "tools", "node");
    await installTypes(directory);
    expect(await typeCheck(directory)).toBe("");
    expect(commandsOf(stdout).types).toBe(
      `npm install --prefix tools/node --save-dev ${join(checkout, "tool-runner/node")} @types/node@24`,
    );
    const second = await toolNew("second", "--runtime", "node");
    expect(commandsOf(second.stdout).types).toBeUndefined();
  });

  test("keeps the package.json and the tsconfig.json that are there", async () => {
    const directory = join(project, "tools", "node");
    await mkdir(directory, { recursive: true });
    for (const name of ["package.json", "tsconfig.json"]) {
      await writeFile(join(directory, name), '{ "type": "module" }');
    }
    const { exitCode, stdout } = await toolNew("my-tool", "--runtime", "node");
    expect(exitCode).toBe(0);
    expect(stdout).not.toMatch(/created .*\.json$/m);
    for (const name of ["package.json", "tsconfig.json"]) {
      expect(await readFile(join(directory, name), "utf8")).toBe('{ "type": "module" }');
    }
  });

  test(
    "makes Node files that are modules also below a package that is none",
    { tags: "full" },
    async () => {
      await writeFile(join(project, "package.json"), '{"type": "commonjs"}');
      const { stdout } = await toolNew("my-tool", "--runtime", "node");
      const commands = commandsOf(stdout);
      for (const command of [commands.test, commands.run]) {
        expect(await type(command)).toMatchObject({ exitCode: 0 });
      }
    },
  );

  test.for([
    ["python", "python/my_tool.py"],
    ["python", "python/my_tool.test.yaml"],
    ["node", "node/my-tool.ts"],
    ["node", "node/my-tool.test.yaml"],
  ] as const)("makes nothing of a %s tool when %s is there", async ([runtime, file]) => {
    const path = join(project, "tools", file);
    await mkdir(join(path, ".."), { recursive: true });
    await writeFile(path, "mine");
    const { exitCode, stderr } = await toolNew("my-tool", "--runtime", runtime);
    expect({ exitCode, stderr }).toEqual({
      exitCode: 2,
      stderr: `error: tools/${file} is there already, and is not overwritten\n`,
    });
    expect(await filesIn(join(project, "tools"))).toEqual([file]);
    expect(await readFile(path, "utf8")).toBe("mine");
  });

  test("makes nothing when the manifest has the tool, or cannot be used", async () => {
    await toolNew("my-tool", "--runtime", "python");
    await rm(join(project, "tools", "python"), { recursive: true });
    const manifest = join(project, "tools", "manifest.yaml");
    const text = await readFile(manifest, "utf8");
    const again = await toolNew("my-tool", "--runtime", "node");
    expect(again).toMatchObject({
      exitCode: 2,
      stderr: 'error: tools/manifest.yaml has a tool "my-tool" already\n',
    });
    await writeFile(manifest, `${text}  broken\n`);
    const broken = await toolNew("other", "--runtime", "python");
    expect(broken.exitCode).toBe(2);
    expect(broken.stderr).toMatch(/^error: tools\/manifest\.yaml:\d+:\d+: /);
    expect(await filesIn(join(project, "tools"))).toEqual(["manifest.yaml"]);
    expect(await readFile(manifest, "utf8")).toBe(`${text}  broken\n`);
  });
});
