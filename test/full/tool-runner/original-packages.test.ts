/**
 * Tools of the original's packages, with the packages themselves in place of the stand-ins.
 *
 * @module-tag full
 */
import { cp, mkdtemp, readFile, readdir, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, afterAll, describe, expect, onTestFinished, test } from "vitest";
import {
  fixtures,
  removeWorkDirs,
  type RunOptions,
  runTool,
  statuses,
} from "../../integration/tool-runner/run-tool.ts";
import { pypiPackages } from "../../support/pypi-packages.ts";
import { startRig } from "../../support/workers/rig.ts";

const sdk = "sam-tool-sdk==0.1.3";
const module = "sdk_documented_tools";

afterAll(removeWorkDirs);

/** A tool directory with the fixture, and with the package itself if there is one. */
async function toolsDir(packages?: string): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "original-packages-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  await cp(join(fixtures, `${module}.py`), join(directory, `${module}.py`));
  if (packages !== undefined)
    await symlink(join(packages, "sam_tool_sdk"), join(directory, "sam_tool_sdk"));
  return directory;
}

describe.each(["the stand-in of sam_tool_sdk", "sam_tool_sdk itself"])("with %s", (which) => {
  async function run(context: TestContext, members: object, options: RunOptions = {}) {
    const packages = which.endsWith("itself")
      ? await pypiPackages(context, [sdk], { hasDependencies: false })
      : undefined;
    const own = { function: undefined, ...members };
    return runTool(module, "", { ...options, toolsDir: await toolsDir(packages), members: own });
  }

  test("a function with its context and its configuration", async (context) => {
    const ran = await run(
      context,
      { function: "greet" },
      { args: { name: "Ann", excited: true }, toolConfig: { token: "t" } },
    );
    expect(ran.document).toMatchObject({
      result: { status: "success", message: "Hello, Ann!", data: { token: "t" }, data_objects: [] },
    });
    expect(statuses(ran)).toEqual(["Greeting Ann..."]);
    expect(await readFile(join(ran.workDir, "output/hello.txt"), "utf8")).toBe("Hello");
  });

  test("a function with artifacts", async (context) => {
    const ran = await run(
      context,
      { function: "sizes" },
      {
        args: { files: ["a.txt"] },
        artifacts: { "files[0]": { filename: "a.txt", content: "four" } },
      },
    );
    expect(ran.document).toMatchObject({ result: { data: { "a.txt": 4 } } });
  });

  test("a function that asks for a model, which is an error that it can catch", async (context) => {
    const ran = await run(context, { function: "ask" });
    expect(ran.document).toMatchObject({
      result: { error_code: "NO_MODEL", message: expect.stringMatching(/no language model/) },
    });
  });

  test("a class, and the tools of a provider", async (context) => {
    const options = { args: { city: "Oslo" }, toolConfig: { units: "m" } };
    for (const members of [
      { class_name: "Forecast" },
      { class_name: "Weather", tool_name: "forecast" },
    ]) {
      const ran = await run(context, members, options);
      expect(ran.document).toMatchObject({
        result: { forecast: "sunny in Oslo", units: "m" },
      });
      expect(statuses(ran)).toEqual(["looking"]);
    }
    const ran = await run(context, { class_name: "Weather", tool_name: "history" }, options);
    expect(ran.document).toMatchObject({ result: { city: "Oslo", provider: "Weather" } });
  });
});

test("programs made of sam_tool_sdk are executables", async (context) => {
  const packages = await pypiPackages(context, [sdk], { hasDependencies: false });
  const script = (cli: string): string =>
    `#!/usr/bin/env python3\nfrom ${module} import ${cli}\n${cli}()\n`;
  const kit = { runtime: "python", tool_dir: "kit" } as const;
  const executables = {
    "kit/python/bin/greet": script("cli"),
    "kit/python/bin/weather": script("weather_cli"),
    [`kit/python/${module}.py`]: await readFile(join(fixtures, `${module}.py`)),
    ...(await filesOf(join(packages, "sam_tool_sdk"), "kit/python/sam_tool_sdk")),
  };
  await using rig = await startRig({
    tools: {
      greet: { ...kit, executable: "greet" },
      weather: { ...kit, executable: "weather", tools: ["forecast", "history"] },
    },
    executables,
  });
  const greeting = await rig.call("greet", { name: "Ann" }, { toolConfig: { token: "t" } });
  expect(greeting).toMatchObject({
    kind: "success",
    toolResult: { status: "success", message: "Hello, Ann." },
    createdArtifacts: [{ filename: "hello.txt" }],
  });
  expect(await rig.call("history", { city: "Oslo" })).toMatchObject({
    kind: "success",
    toolResult: { city: "Oslo", provider: "Weather" },
  });
});

/** The Python files directly in a directory, by their new paths. */
async function filesOf(directory: string, target: string): Promise<Record<string, Buffer>> {
  const names = (await readdir(directory)).filter((name) => name.endsWith(".py"));
  const contents = await Promise.all(
    names.map(
      async (name) => [`${target}/${name}`, await readFile(join(directory, name))] as const,
    ),
  );
  return Object.fromEntries(contents);
}
