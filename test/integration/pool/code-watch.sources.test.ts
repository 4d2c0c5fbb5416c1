/**
 * What is followed of each language: its tools, its interpreter and what is installed beside that.
 */
import { execFile } from "node:child_process";
import {
  appendFile,
  chmod,
  mkdir,
  mkdtemp,
  readdir,
  realpath,
  rename,
  rm,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { fileURLToPath } from "node:url";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { openNodeRunner } from "../../../worker/runners/node.ts";
import { openPythonRunner } from "../../../worker/runners/python.ts";
import type { ToolRunner } from "../../../worker/runners/runner.ts";
import type { SandboxBackend } from "../../../worker/sandbox/sandbox.ts";
import { fingerprintCode } from "../../../worker/pool/code/fingerprint.ts";
import { systemClock } from "../../../worker/support/clock.ts";
import { newId } from "../../../worker/support/ids.ts";
import { createLogger } from "../../../worker/telemetry/logger.ts";

const run = promisify(execFile);
const never = new AbortController().signal;
const runnerDir = (language: string): string =>
  fileURLToPath(new URL(`../../../tool-runner/${language}`, import.meta.url));

/** Where sandboxes see the host's directories as they are. */
const backend: Pick<SandboxBackend, "share" | "acquire"> = {
  share: async (source) => ({ source, async [Symbol.asyncDispose]() {} }),
  acquire: () => Promise.reject(new Error("nothing runs here")),
};

let base: string;
let common: Pick<
  Parameters<typeof openNodeRunner>[0],
  "toolsDir" | "scratchDir" | "backend" | "workerEnvironment"
>;
beforeEach(async () => {
  base = await realpath(await mkdtemp(join(tmpdir(), "code-sources-")));
  onTestFinished(() => rm(base, { recursive: true }));
  await mkdir(join(base, "tools"));
  common = {
    toolsDir: join(base, "tools"),
    scratchDir: join(base, "scratch"),
    backend,
    workerEnvironment: {},
  };
});

/** Whether a change of the host is a change of a language's code. */
async function isSeen(
  { sources }: Pick<ToolRunner, "sources">,
  change: () => Promise<unknown>,
): Promise<boolean> {
  const before = await fingerprintCode(sources, never);
  expect((await fingerprintCode(sources, never)).fingerprint).toBe(before.fingerprint);
  await change();
  return (await fingerprintCode(sources, never)).fingerprint !== before.fingerprint;
}

describe("Python in a virtual environment", () => {
  let packages: string;
  let project: string;
  let pythonBin: string;
  beforeEach(async () => {
    const venv = join(base, "venv");
    await run("/usr/bin/python3", ["-m", "venv", "--without-pip", venv]);
    pythonBin = join(venv, "bin/python");
    const [version = ""] = await readdir(join(venv, "lib"));
    packages = join(venv, "lib", version, "site-packages");
    await mkdir(join(packages, "installed-1.0.dist-info"));
    project = join(venv, "src/project");
    await mkdir(join(project, "deep"), { recursive: true });
    await writeFile(join(project, "deep/module.py"), "");
    await writeFile(join(packages, "project.pth"), `${project}\n`);
  });

  const open = () => openPythonRunner({ ...common, pythonBin, runnerDir: runnerDir("python") });

  test("has its tools, the packages that are worked on and what is installed followed", async () => {
    await using runner = await open();
    expect(runner.sources.filter(({ depth }) => depth === "tree")).toEqual([
      { path: join(base, "tools"), depth: "tree" },
      { path: project, depth: "tree" },
    ]);
    const listed = runner.sources.flatMap(({ path, depth }) => (depth === "listing" ? path : []));
    expect(listed).toContain(pythonBin);
    expect(listed).toContain(packages);
    expect(listed).toContainEqual(expect.stringMatching(/^\/usr\/lib\/python3[.\d]*$/));
  });

  test("has changed with its tools", async () => {
    await using runner = await open();
    const path = join(base, "tools/tool.py");
    expect(await isSeen(runner, () => writeFile(path, "1"))).toBe(true);
    expect(await isSeen(runner, () => writeFile(path, "22"))).toBe(true);
  });

  test(
    "has changed when pip upgrades a package, and when it makes one editable",
    { tags: "full" },
    async () => {
      await using runner = await open();
      const from = join(packages, "installed-1.0.dist-info");
      const to = join(packages, "installed-1.1.dist-info");
      expect(await isSeen(runner, () => rename(from, to))).toBe(true);
      const link = join(packages, "other.pth");
      expect(await isSeen(runner, () => writeFile(link, "/elsewhere\n"))).toBe(true);
    },
  );

  test("has changed with a package that is worked on", { tags: "full" }, async () => {
    await using runner = await open();
    const path = join(project, "deep/module.py");
    expect(await isSeen(runner, () => appendFile(path, "changed = True\n"))).toBe(true);
  });

  test("has changed when the environment gets another interpreter", { tags: "full" }, async () => {
    await using runner = await open();
    const other = join(base, "python");
    await writeFile(other, "");
    expect(await isSeen(runner, () => rename(other, pythonBin))).toBe(true);
  });

  test("has not changed with what no tool loads", { tags: "full" }, async () => {
    await using runner = await open();
    expect(await isSeen(runner, () => writeFile(join(base, "notes"), ""))).toBe(false);
  });
});

describe("Node", () => {
  test("has changed with its tools and their packages, and with the program", async () => {
    const nodeBin = join(base, "node");
    const facts = JSON.stringify({ version: "24.1.0", executable: nodeBin });
    await writeFile(nodeBin, `#!/bin/sh\necho '${facts}'\n`);
    await chmod(nodeBin, 0o755);
    const packageDir = join(base, "tools/node_modules/package/lib");
    await mkdir(packageDir, { recursive: true });
    await writeFile(join(packageDir, "index.js"), "1");
    await using runner = await openNodeRunner({
      ...common,
      nodeBin,
      runnerDir: runnerDir("node"),
      clock: systemClock,
      newId,
      log: createLogger("silent", 1),
    });
    expect(await isSeen(runner, () => writeFile(join(base, "tools/tool.js"), ""))).toBe(true);
    expect(await isSeen(runner, () => writeFile(join(packageDir, "index.js"), "22"))).toBe(true);
    expect(await isSeen(runner, () => appendFile(nodeBin, "\n"))).toBe(true);
    expect(await isSeen(runner, () => writeFile(join(base, "notes"), ""))).toBe(false);
  });
});
