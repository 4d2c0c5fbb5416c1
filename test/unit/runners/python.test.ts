/**
 * Python tools: what their sandboxes hold, and which of them this host can serve.
 */
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readdir, realpath, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { toPackageSet } from "../../../worker/manifest/fields/packages.ts";
import type { ToolEntry } from "../../../worker/manifest/manifest.ts";
import { publicRefusal } from "../../../worker/protocol/refusal.ts";
import { type PythonRunnerOptions, openPythonRunner } from "../../../worker/runners/python.ts";
import { builtInProfiles } from "../../../worker/sandbox/profile.ts";
import type { SandboxBackend } from "../../../worker/sandbox/sandbox.ts";
import { tool as anyTool } from "../manifest/fixtures.ts";

const run = promisify(execFile);
const never = new AbortController().signal;
const runnerDir = fileURLToPath(new URL("../../../tool-runner/python", import.meta.url));
const profile = builtInProfiles.get("standard")!;
const systemPython = "/usr/bin/python3";

function tool(changes: Partial<ToolEntry> = {}): ToolEntry {
  return anyTool("tool", { module: "module", ...changes });
}

/** A backend that shares directories as copies would be, and counts which are in use. */
class CountingBackend implements Pick<SandboxBackend, "share"> {
  readonly inUse: string[] = [];
  readonly refused = new Set<string>();
  #number = 0;

  share: SandboxBackend["share"] = async (directory) => {
    if (this.refused.has(directory)) throw new Error(`${directory} cannot be shared`);
    this.inUse.push(directory);
    return {
      source: `/copies/${++this.#number}`,
      [Symbol.asyncDispose]: async () => {
        this.inUse.splice(this.inUse.indexOf(directory), 1);
      },
    };
  };
}

async function temporaryDirectory(): Promise<string> {
  return realpath(await mkdtemp(join(tmpdir(), "str-python-")));
}

/** Options of a runner on a backend that counts, until the test is over. */
async function newOptions(changes: Partial<PythonRunnerOptions> = {}) {
  const scratchDir = await temporaryDirectory();
  onTestFinished(() => rm(scratchDir, { recursive: true }));
  return optionsIn(scratchDir, changes);
}

function optionsIn(scratchDir: string, changes: Partial<PythonRunnerOptions>) {
  const backend = new CountingBackend();
  const options = {
    pythonBin: systemPython,
    toolsDir: "/usr/share",
    runnerDir,
    scratchDir,
    backend,
    workerEnvironment: {},
    ...changes,
  };
  return { backend, scratchDir, options };
}

describe("the system's interpreter", () => {
  test("is described to the operator by its version and place", async () => {
    const { options } = await newOptions();
    await using runner = await openPythonRunner(options);
    expect(runner.runtime).toBe("python");
    expect(runner.description).toMatch(/^Python 3\.\d+\.\S+ \(\/usr\/bin\/python3\S*\)$/);
  });

  test("needs no mounts but the runner and the tools", async () => {
    const { options, scratchDir } = await newOptions();
    await using runner = await openPythonRunner(options);
    await using prepared = await runner.prepare(tool(), profile);
    expect(prepared.mounts).toEqual([
      { source: join(scratchDir, "python-runner"), target: "/sandbox/runner" },
      { source: "/copies/1", target: "/tools/python" },
    ]);
    expect(prepared.launch.argv).toEqual([
      expect.stringMatching(/^\/usr\/bin\/python3/),
      "-I",
      "-B",
      "/sandbox/runner/tool_runner/__main__.py",
      "/sandbox/work/runner_args.json",
    ]);
  });
});

describe("a call of a Python tool", () => {
  test("has the tools as they are at that moment, for as long as it runs", async () => {
    const { options, backend } = await newOptions();
    await using runner = await openPythonRunner(options);
    const first = await runner.prepare(tool(), profile);
    const second = await runner.prepare(tool(), profile);
    expect(backend.inUse).toEqual(["/usr/share", "/usr/share"]);
    expect(first.mounts.at(-1)?.source).not.toBe(second.mounts.at(-1)?.source);
    await first[Symbol.asyncDispose]();
    expect(backend.inUse).toEqual(["/usr/share"]);
    await second[Symbol.asyncDispose]();
    expect(backend.inUse).toEqual([]);
  });

  test("has an environment of its own, and of the worker's what its manifest entry names", async () => {
    const workerEnvironment = {
      API_URL: "https://api.example",
      EMPTY: "",
      SOLACE_PASSWORD: "secret",
      PATH: "/root/bin",
    };
    const { options } = await newOptions({ workerEnvironment });
    await using runner = await openPythonRunner(options);
    const base = {
      PATH: "/usr/local/bin:/usr/bin:/bin",
      HOME: "/tmp",
      TMPDIR: "/tmp",
      LANG: "C.UTF-8",
      PYTHONPATH: "/tools/python",
      PYTHONDONTWRITEBYTECODE: "1",
    };
    await using plain = await runner.prepare(tool(), profile);
    expect(Object.fromEntries(plain.environment)).toEqual(base);
    await using named = await runner.prepare(
      tool({ env: ["API_URL", "EMPTY", "NOT_SET"] }),
      profile,
    );
    expect(Object.fromEntries(named.environment)).toEqual({
      ...base,
      API_URL: "https://api.example",
      EMPTY: "",
    });
  });
});

describe("a Python tool with packages of its own", () => {
  test("does not run without them where they are to be installed", async () => {
    const { options } = await newOptions({ installsPackages: true });
    await using runner = await openPythonRunner(options);
    const packages = toPackageSet("python", { package: "a" });
    await expect(runner.prepare(tool({ packages }), profile)).rejects.toThrow(/not installed/);
    await using _prepared = await runner.prepare(tool(), profile);
  });

  const installation = { dir: "/environments/abc", key: "abc" };

  test("sees them in a virtual environment, and nothing that its interpreter brings", async () => {
    const installationOf = ({ name }: ToolEntry) => (name === "tool" ? installation : undefined);
    const { options, backend, scratchDir } = await newOptions({ installationOf });
    const runner = await openPythonRunner(options);
    const first = await runner.prepare(tool(), profile);
    const second = await runner.prepare(tool(), profile);
    expect(first.mounts).toEqual([
      { source: join(scratchDir, "python-runner"), target: "/sandbox/runner" },
      { source: join(scratchDir, "python-environment"), target: "/sandbox/python" },
      { source: "/copies/1", target: "/tools/python" },
      { source: "/copies/2", target: "/tools/environment" },
    ]);
    expect(first.launch.argv.slice(0, 3)).toEqual(["/sandbox/python/bin/python3", "-I", "-B"]);
    expect(first.template?.argv[0]).toBe("/sandbox/python/bin/python3");
    expect(Object.fromEntries(first.environment)).toMatchObject({
      PATH: "/sandbox/python/bin:/tools/environment/packages/bin:/usr/local/bin:/usr/bin:/bin",
      PYTHONPATH: "/tools/python",
      PYTHONUSERBASE: "/sandbox/python",
      TOOL_PACKAGES_DIR: "/tools/environment/packages",
    });
    // Shared once, for all sandboxes: it never changes.
    expect(second.mounts.at(-1)).toEqual(first.mounts.at(-1));
    await first[Symbol.asyncDispose]();
    await second[Symbol.asyncDispose]();
    expect(backend.inUse).toEqual(["/environments/abc"]);
    const other = { ...tool(), name: "other" };
    expect([runner.installationKeyOf!(tool()), runner.installationKeyOf!(other)]).toEqual([
      "abc",
      undefined,
    ]);
    await using plain = await runner.prepare(other, profile);
    expect(plain.mounts.map(({ target }) => target)).toEqual(["/sandbox/runner", "/tools/python"]);
    await plain[Symbol.asyncDispose]();
    await runner[Symbol.asyncDispose]();
    expect(backend.inUse).toEqual([]);
  });

  test("is prepared again where its packages could not be shared", async () => {
    const { options, backend } = await newOptions({ installationOf: () => installation });
    await using runner = await openPythonRunner(options);
    backend.refused.add("/environments/abc");
    await expect(runner.prepare(tool(), profile)).rejects.toThrow("cannot be shared");
    expect(backend.inUse).toEqual([]);
    backend.refused.clear();
    await using prepared = await runner.prepare(tool(), profile);
    expect(prepared.mounts.at(-1)?.target).toBe("/tools/environment");
  });
});

describe("the tool runner", () => {
  test("is compiled once, readable by everybody, with names as they are inside", async () => {
    const { options, scratchDir } = await newOptions();
    await using _runner = await openPythonRunner(options);
    const directory = join(scratchDir, "python-runner/tool_runner");
    const sources = (await readdir(directory)).filter((name) => name.endsWith(".py"));
    const compiled = await readdir(join(directory, "__pycache__"));
    expect(compiled.map((name) => name.split(".")[0]).toSorted()).toEqual(
      sources.map((name) => name.split(".")[0]).toSorted(),
    );
    for (const path of [directory, join(directory, "__pycache__", compiled[0]!)]) {
      expect((await stat(path)).mode & 0o004).toBe(0o004);
    }
    const { stdout } = await run(systemPython, [
      "-c",
      "import marshal, sys; print(marshal.loads(open(sys.argv[1], 'rb').read()[16:]).co_filename)",
      join(directory, "__pycache__", compiled[0]!),
    ]);
    expect(stdout).toMatch(/^\/sandbox\/runner\/tool_runner\/\w+\.py\n$/);
  });

  test("that is not there is refused", async () => {
    const { options, backend } = await newOptions({ runnerDir: "/no/such/runner" });
    await expect(openPythonRunner(options)).rejects.toThrow(
      expect.objectContaining({ name: "SandboxError" }),
    );
    expect(backend.inUse).toEqual([]);
  });
});

describe("a program that is no Python interpreter", () => {
  test.each(["/no/such/python3", "/usr/bin/false", "/usr/bin/true", "/usr/bin/env"])(
    "is refused by name: %s",
    async (pythonBin) => {
      const { options } = await newOptions({ pythonBin });
      await expect(openPythonRunner(options)).rejects.toThrow(
        expect.objectContaining({
          name: "SandboxError",
          message: `cannot use ${pythonBin} as the Python interpreter`,
        }),
      );
    },
  );
});

test.each([
  ["3.8.18", false],
  ["3.9.0", true],
  ["2.7.18", false],
])("Python %s is new enough: %s", async (version, isEnough) => {
  const { options, scratchDir } = await newOptions({ pythonBin: "" });
  const pythonBin = join(scratchDir, "python");
  const facts = { version, executable: pythonBin, base: pythonBin, identity: version };
  const answer = JSON.stringify({ ...facts, directories: [], installed: [], added: [] });
  await writeFile(pythonBin, `#!/bin/sh\necho '${answer}'\n`, { mode: 0o755 });
  const opened = openPythonRunner({ ...options, pythonBin });
  if (isEnough) await (await opened)[Symbol.asyncDispose]();
  else
    await expect(opened).rejects.toThrow(
      `${pythonBin} is Python ${version}; tools need Python 3.9 or later`,
    );
});

describe("an interpreter outside /usr", () => {
  let base: string;
  let python: string;

  beforeAll(async () => {
    base = await temporaryDirectory();
    await run(systemPython, ["-m", "venv", "--without-pip", join(base, "venv")]);
    python = join(base, "venv/bin/python");
    const [version] = await readdir(join(base, "venv/lib"));
    const packages = join(base, "venv/lib", version!, "site-packages");
    for (const [name, packageVersion] of [
      ["only_here", "1.4"],
      ["dotted.name", "2.0"],
      ["early_bird", "3.0rc1"],
    ]) {
      const information = join(packages, `${name}-${packageVersion}.dist-info`);
      await mkdir(information);
      await writeFile(
        join(information, "METADATA"),
        `Metadata-Version: 2.1\nName: ${name}\nVersion: ${packageVersion}\n`,
      );
    }
    await writeFile(join(packages, "bare_module.py"), "");
    await mkdir(join(packages, "loud_package"));
    await writeFile(join(packages, "loud_package/__init__.py"), "raise SystemExit('imported')\n");
    await writeFile(join(packages, "loud_package/inner.py"), "");
  });
  afterAll(() => rm(base, { recursive: true, force: true }));

  test("is mounted as a whole where it is, once for all calls", async () => {
    const { options, backend } = await newOptions({ pythonBin: python });
    const runner = await openPythonRunner(options);
    expect(backend.inUse).toEqual([join(base, "venv")]);
    await using prepared = await runner.prepare(tool(), profile);
    expect(prepared.mounts).toContainEqual({ source: "/copies/1", target: join(base, "venv") });
    expect(prepared.launch.argv[0]).toBe(python);
    expect(prepared.environment.get("PATH")).toBe(
      `${join(base, "venv/bin")}:/usr/local/bin:/usr/bin:/bin`,
    );
    await prepared[Symbol.asyncDispose]();
    await runner[Symbol.asyncDispose]();
    expect(backend.inUse).toEqual([]);
  });

  test("that cannot be shared is refused, and nothing stays shared", async () => {
    const { options, backend } = await newOptions({ pythonBin: python });
    backend.refused.add(join(base, "venv"));
    await expect(openPythonRunner(options)).rejects.toThrow("cannot be shared");
    expect(backend.inUse).toEqual([]);
  });

  test("keeps its place: no mount of a tool covers it, holds it, or lies in it", async () => {
    const { options } = await newOptions({ pythonBin: python });
    await using runner = await openPythonRunner(options);
    const refusal = (target: string) =>
      runner.refuse(tool({ mounts: [{ source: "/data", target }] }), never);
    const venv = join(base, "venv");
    for (const target of [venv, join(venv, "data"), base]) {
      expect(await refusal(target)).toEqual({
        reason: `mount at ${target} overlaps ${venv}, which the Python interpreter needs`,
        publicReason: "one of its mounts overlaps the Python interpreter",
      });
    }
    expect(await refusal(`${venv}-data`)).toBeUndefined();
  });

  describe("serves a tool", () => {
    // It keeps nothing of a tool, and to open one takes longer than to ask it.
    let runner: Awaited<ReturnType<typeof openPythonRunner>>;
    beforeAll(async () => {
      const scratchDir = await mkdtemp(join(base, "scratch-"));
      runner = await openPythonRunner(optionsIn(scratchDir, { pythonBin: python }).options);
    });
    afterAll(() => runner[Symbol.asyncDispose]());

    test("of any module", async () => {
      expect(await runner.refuse(tool(), never)).toBeUndefined();
    });

    test("unless its module is named as its file is", async () => {
      const toolsDir = await mkdtemp(join(base, "tools-"));
      const { options } = await newOptions({ pythonBin: python, toolsDir });
      await using runner = await openPythonRunner(options);
      await writeFile(join(toolsDir, "words.py"), "");
      await mkdir(join(toolsDir, "package"));
      await writeFile(join(toolsDir, "package", "py.py"), "");
      const reason = 'module "words.py" is the name of a file; the module in it is called "words"';
      expect(await runner.refuse(tool({ module: "words.py" }), never)).toEqual(
        publicRefusal(reason),
      );
      expect(await runner.refuse(tool({ module: "package.py" }), never)).toBeUndefined();
      expect(await runner.refuse(tool({ module: "missing.py" }), never)).toBeUndefined();
    });
  });
});
