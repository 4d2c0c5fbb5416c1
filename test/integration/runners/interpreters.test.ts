/**
 * Tools whose manifest entry names their interpreter, in real sandboxes.
 */
import { execFile } from "node:child_process";
import { mkdir, readdir, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, onTestFinished, test } from "vitest";
import { directoryOf, openToolStarts } from "../../support/runners/tool-starts.ts";
import { tool } from "../../unit/manifest/fixtures.ts";
import { never, sharedBackends, temporaryDirectory } from "../sandbox/sandbox-host.ts";

const run = promisify(execFile);
const openBackend = sharedBackends();

const systemPython = "/usr/bin/python3";

const looks = `
import subprocess, sys
try:
    from only import VERSION as only
except ImportError:
    only = None

def run():
    child = subprocess.run(["python3", "-c", "import sys; print(sys.version.split()[0])"], capture_output=True, text=True)
    version = sys.version.split()[0]
    return {"version": version, "prefix": sys.prefix, "only": only, "isSame": child.stdout.strip() == version}
`;
const files = { "looks.py": looks };
const looking = (name: string, changes = {}) =>
  tool(name, { module: "looks", start: "cold", ...changes });

/**
 * A virtual environment of the system's interpreter: another one, in a place of its own. A template
 * must not have mounts in the memory file systems of sandboxes.
 */
async function makeVenv(): Promise<string> {
  const venv = join(await temporaryDirectory(onTestFinished, "/var/tmp"), "venv");
  await run(systemPython, ["-m", "venv", "--without-pip", venv]);
  const [version = ""] = await readdir(join(venv, "lib"));
  await writeFile(join(venv, "lib", version, "site-packages/only.py"), 'VERSION = "of the venv"\n');
  return venv;
}

describe("a Python tool", () => {
  test("runs by the interpreter that it names, of those that are allowed, beside others", async (context) => {
    const backend = await openBackend(context);
    const venv = await makeVenv();
    const program = join(venv, "bin/python");
    const { call, installations, runners, starts, untilIdle } = await openToolStarts({
      backend,
      files,
      pythons: new Map([
        ["science", program],
        ["0.1", systemPython],
        ["broken", "/usr/bin/false"],
      ]),
    });
    const packages = { "packages/only.py": 'VERSION = "of the tool"\n' };
    installations.set("own", { dir: await directoryOf(packages), key: "own" });

    const inVenv = { prefix: venv, only: "of the venv", isSame: true };
    const entries = [
      looking("plain"),
      looking("named", { interpreter: program }),
      looking("own", { interpreter: "science" }),
    ];
    expect(await Promise.all(entries.map((entry) => call(entry)))).toMatchObject([
      { result: { prefix: "/usr", only: null } },
      { result: inVenv },
      // Its packages are those of the tool, even where the interpreter brings others.
      { result: { prefix: "/sandbox/python", only: "of the tool", isSame: true } },
    ]);
    const entry = looking("idle", { interpreter: "science", start: "template" });
    starts.follow([{ ...entry, warm: { min: 1, max: 1 } }]);
    await untilIdle(entry);
    expect(await call({ ...entry, warm: { min: 1, max: 1 } })).toMatchObject({
      startMode: "template",
      result: inVenv,
    });

    const reasons = ["none", "/bin/sh", "0.1", "broken", "science"].map(async (interpreter) => {
      const refusal = await runners.get("python")!.refuse(looking("x", { interpreter }), never);
      return refusal && [refusal.reason, refusal.publicReason];
    });
    const isPublic = "the worker has no such interpreter";
    expect(await Promise.all(reasons)).toEqual([
      ['interpreter "none" is not allowed: SANDBOX_PYTHONS allows science, 0.1, broken', isPublic],
      [expect.stringMatching(/^interpreter "\/bin\/sh" is not allowed/), isPublic],
      [
        expect.stringMatching(/^SANDBOX_PYTHONS has \/usr\/bin\/python3 for 0\.1, but .* 3\./),
        isPublic,
      ],
      ["cannot use /usr/bin/false as the Python interpreter", isPublic],
      undefined,
    ]);
  });

  test("has an interpreter that is described to what installs packages for it", async (context) => {
    const backend = await openBackend(context);
    const venv = await makeVenv();
    const { runners } = await openToolStarts({
      backend,
      pythons: new Map([["science", join(venv, "bin/python")]]),
    });
    const python = runners.get("python")!;
    const usual = await python.interpreterOf!(looking("plain"));
    expect(usual.identity).toMatch(/^cpython-3\.\d+\.\d+-cpython-3\d+-.*-linux-/);
    expect(usual.mounts).toEqual([]);
    const described = await python.interpreterOf!(looking("x", { interpreter: "science" }));
    expect(described).toMatchObject({
      executable: expect.stringMatching(/^\/usr\/bin\/python3\.\d+$/),
      mounts: [expect.objectContaining({ target: venv })],
      identity: usual.identity,
    });
    await expect(python.interpreterOf!(looking("x", { interpreter: "none" }))).rejects.toThrow(
      "is not allowed",
    );
    const node = await runners.get("node")!.interpreterOf!(tool("n", { runtime: "node" }));
    expect(node.identity).toMatch(/^node-v24\.\S+-abi\d+-linux-\w+-(?:glibc|musl)$/);
  });
});

/** Interpreters of other versions on this host: those of pyenv. */
async function otherPythons(): Promise<readonly [version: string, program: string][]> {
  const root = process.env["PYENV_ROOT"] ?? join(process.env["HOME"] ?? "/", ".pyenv");
  const names = await readdir(join(root, "versions")).catch(() => []);
  return names
    .filter((name) => /^3\.(?:9|\d\d)\.\d+$/.test(name))
    .map((name) => [name, join(root, "versions", name, "bin/python3")]);
}

describe("Python of another version", () => {
  test(
    "runs tools, cold and by a template, with its packages and with those of the tool",
    { tags: "full" },
    async (context) => {
      const pythons = await otherPythons();
      context.skip(pythons.length === 0, "needs another Python, such as one of pyenv");
      const backend = await openBackend(context);
      const { call, installations, starts, untilIdle } = await openToolStarts({
        backend,
        files,
        pythons: new Map(pythons),
      });
      const packages = { "packages/only.py": 'VERSION = "of the tool"\n' };
      const installation = { dir: await directoryOf(packages), key: "own" };
      for (const [version, program] of pythons) {
        const facts = { version, isSame: true };
        const prefix = dirname(dirname(program));
        expect(await call(looking("plain", { interpreter: version }))).toMatchObject({
          result: { ...facts, prefix, only: null },
        });
        installations.set(version, installation);
        const warm = { min: 1, max: 1 };
        const entry = looking(version, { interpreter: version, start: "template", warm });
        starts.follow([entry]);
        await untilIdle(entry);
        expect(await call(entry)).toMatchObject({
          startMode: "template",
          result: { ...facts, only: "of the tool" },
        });
      }
    },
  );

  test("is found where uv has installed it", { tags: "full" }, async (context) => {
    const [[version, program] = ["", ""]] = await otherPythons();
    context.skip(version === "", "needs another Python, such as one of pyenv");
    const base = await temporaryDirectory();
    await run(systemPython, ["-m", "venv", join(base, "venv")]);
    await run(join(base, "venv/bin/pip"), ["install", "--quiet", "uv"]);
    const managed = join(base, "managed", `cpython-${version}-linux-x86_64-gnu`);
    await mkdir(managed, { recursive: true });
    const prefix = dirname(dirname(program));
    for (const name of await readdir(prefix))
      await symlink(join(prefix, name), join(managed, name));
    const { runners } = await openToolStarts({
      backend: await openBackend(context),
      pythons: new Map([
        [version, "uv"],
        ["3.99", "uv"],
      ]),
      workerEnvironment: {
        PATH: join(base, "venv/bin"),
        UV_PYTHON_INSTALL_DIR: join(base, "managed"),
      },
    });
    const python = runners.get("python")!;
    expect(await python.interpreterOf!(looking("x", { interpreter: version }))).toMatchObject({
      executable: expect.stringContaining(managed),
    });
    expect(await python.refuse(looking("y", { interpreter: "3.99" }), never)).toEqual({
      reason: "uv has no Python 3.99; uv python install 3.99 gets it",
      publicReason: "the worker has no such interpreter",
    });
  });
});

describe("Node of another version", () => {
  test("runs tools", { tags: "full" }, async (context) => {
    const base = await temporaryDirectory();
    await run("npm", ["install", "--prefix", base, "--no-audit", "--no-fund", "node@25"]);
    const program = join(base, "node_modules/node/bin/node");
    const { call } = await openToolStarts({
      backend: await openBackend(context),
      nodeFiles: {
        "looks.ts": "export const run = () => ({ version: process.versions.node as string });",
      },
      nodes: new Map([["25", program]]),
    });
    const entry = (changes: object) =>
      tool("x", { runtime: "node", module: "looks.ts", start: "cold", ...changes });
    expect(await call(entry({}))).toMatchObject({ result: { version: process.versions.node } });
    expect(await call(entry({ interpreter: "25" }))).toMatchObject({
      result: { version: expect.stringMatching(/^25\./) },
    });
  });
});
