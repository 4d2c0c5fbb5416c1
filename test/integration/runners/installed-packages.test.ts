/**
 * Packages that are installed for a tool alone: versions that conflict, side by side.
 */
import { execFile } from "node:child_process";
import { readdir } from "node:fs/promises";
import { promisify } from "node:util";
import { type TestContext, describe, expect, onTestFinished, test } from "vitest";
import { openHost } from "../../../worker/sandbox/host/backend.ts";
import type { ToolEntry } from "../../../worker/manifest/manifest.ts";
import type { SandboxBackend } from "../../../worker/sandbox/sandbox.ts";
import { type Files, directoryOf, openToolStarts } from "../../support/runners/tool-starts.ts";
import { tool } from "../../unit/manifest/fixtures.ts";
import { backendOptions, sharedBackends, temporaryDirectory } from "../sandbox/sandbox-host.ts";

const run = promisify(execFile);

const openBubblewrap = sharedBackends();

async function openBareHost(): Promise<SandboxBackend> {
  const backend = await openHost(backendOptions(await temporaryDirectory()));
  onTestFinished(() => backend[Symbol.asyncDispose]());
  return backend;
}

type OpenBackend = (context: TestContext) => Promise<SandboxBackend>;

/** As `pip install --target` leaves two packages, a program and a `.pth` file. */
function pythonPackages(version: string): Files {
  return {
    "packages/conflict/__init__.py": `VERSION = "${version}"\n`,
    "packages/conflict/__main__.py": "from conflict import VERSION\nprint(VERSION)\n",
    [`packages/conflict-${version}.dist-info/METADATA`]: `Metadata-Version: 2.1\nName: conflict\nVersion: ${version}\n`,
    "packages/namespace/part.py": `PART = "part of ${version}"\n`,
    "packages/more.pth": "more\n",
    "packages/more/by_pth.py": `PTH = "by .pth of ${version}"\n`,
    "packages/json.py": "raise ImportError('hides the standard library')\n",
    "packages/bin/conflict":
      "#!/usr/bin/python3\nimport by_pth, conflict, json\nprint(conflict.VERSION)\n",
    "packages/own.py": "raise ImportError('hides the module of the tool')\n",
  };
}

const pythonTool = `
import errno, importlib.metadata, json, os, subprocess, sys
import by_pth, conflict, namespace.part, own

def output(*argv):
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()

def attempt(path):
    try:
        with open(path, "a"):
            return "written"
    except OSError as error:
        return errno.errorcode[error.errno]

def run():
    site = json.loads(output("/usr/bin/python3", "-c", "import json, site; print(json.dumps(site.getsitepackages()))"))
    return {
        "version": conflict.VERSION,
        "metadata": importlib.metadata.version("conflict"),
        "namespace": namespace.part.PART,
        "pth": by_pth.PTH,
        "own": own.WORD,
        "module": output(sys.executable, "-c", "import conflict, by_pth; print(conflict.VERSION, by_pth.PTH)"),
        "option": output("python3", "-m", "conflict"),
        "program": output("conflict"),
        "leaks": [path for path in sys.path if path in site],
        "writes": [attempt(conflict.__file__), attempt(os.path.dirname(conflict.__file__) + "/new.py")],
    }
`;

/** What a tool with packages of this version finds. */
const foundInPython = (version: string) => ({
  version,
  metadata: version,
  namespace: `part of ${version}`,
  pth: `by .pth of ${version}`,
  own: "the tool's",
  module: `${version} by .pth of ${version}`,
  option: version,
  program: version,
  leaks: [],
});

const pythonFiles = { "uses.py": pythonTool, "own.py": 'WORD = "the tool\'s"\n' };

describe("packages of a Python tool", () => {
  const conflictWithNone = async (open: OpenBackend, context: TestContext): Promise<void> => {
    const backend = await open(context);
    const { call, installations } = await openToolStarts({ backend, files: pythonFiles });
    for (const version of ["1.0", "2.0"])
      installations.set(version, {
        dir: await directoryOf(pythonPackages(version)),
        key: version,
      });
    const results = await Promise.all(
      ["1.0", "2.0"].map((name) => call(tool(name, { module: "uses", start: "cold" }))),
    );
    expect(results).toMatchObject(
      ["1.0", "2.0"].map((version) => ({ startMode: "cold", result: foundInPython(version) })),
    );
  };
  test("conflict with those of no other, in bubblewrap", { tags: "promise-S31" }, (context) =>
    conflictWithNone(openBubblewrap, context),
  );
  test(
    "conflict with those of no other, on the bare host",
    { tags: ["full", "promise-S31"] },
    (context) => conflictWithNone(openBareHost, context),
  );

  test("are read-only", { tags: "promise-S31" }, async (context) => {
    const backend = await openBubblewrap(context);
    const { call, installations } = await openToolStarts({ backend, files: pythonFiles });
    const dir = await directoryOf(pythonPackages("1.0"));
    await run("/usr/bin/chmod", ["-R", "a+rwX", dir]);
    installations.set("tool", { dir, key: "1.0" });
    const { result } = await call(tool("tool", { module: "uses", start: "cold" }));
    expect(result).toMatchObject({ writes: ["EROFS", "EROFS"] });
    expect(await readdir(`${dir}/packages/conflict`)).toEqual(["__init__.py", "__main__.py"]);
  });
});

/** As `npm install` leaves packages: ESM, CommonJS with a dependency, and a program. */
function nodePackages(version: string): Files {
  return {
    "node_modules/conflict/package.json": JSON.stringify({ version, exports: "./index.js" }),
    "node_modules/conflict/index.js": `exports.version = "${version}";\nexports.inner = require("dependency");\n`,
    "node_modules/dependency/index.js": `module.exports = "dependency of ${version}";\n`,
    "node_modules/modern/package.json": JSON.stringify({
      type: "module",
      exports: { ".": { import: "./index.js", require: "./index.cjs" } },
    }),
    "node_modules/modern/index.js": `export const text = "imported ${version}";\n`,
    "node_modules/modern/index.cjs": `exports.text = "required ${version}";\n`,
    "node_modules/.bin/conflict": `#!/usr/bin/env node\nconsole.log("program of ${version}");\n`,
  };
}

const nodeTool = `
import { execFileSync } from "node:child_process";
import { appendFileSync } from "node:fs";
import { createRequire } from "node:module";
import conflict from "conflict";
import { text } from "modern";
import { ToolError } from "secure-tool-runtime/tool";

const load = createRequire(import.meta.url);

function attempt(path: string): string {
  try {
    appendFileSync(path, "");
    return "written";
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? "";
  }
}

export function run() {
  return {
    version: conflict.version,
    inner: conflict.inner,
    imported: text,
    required: load("modern").text,
    same: load("conflict") === conflict,
    program: execFileSync("conflict", { encoding: "utf8" }).trim(),
    toolkit: new ToolError("x") instanceof Error,
    writes: attempt(load.resolve("conflict")),
  };
}
`;

const foundInNode = (version: string) => ({
  version,
  inner: `dependency of ${version}`,
  imported: `imported ${version}`,
  required: `required ${version}`,
  same: true,
  program: `program of ${version}`,
  toolkit: true,
});

const nodeFiles = {
  "deep/uses.ts": nodeTool,
  "node_modules/conflict/index.js": 'exports.version = "shared";\n',
};
const nodeEntry = (name: string, changes = {}) =>
  tool(name, { runtime: "node", module: "deep/uses.ts", start: "cold", ...changes });

describe("packages of a Node tool", () => {
  const goFirst = async (open: OpenBackend, context: TestContext): Promise<void> => {
    const backend = await open(context);
    const { call, installations } = await openToolStarts({ backend, nodeFiles });
    for (const version of ["1.0", "2.0"])
      installations.set(version, { dir: await directoryOf(nodePackages(version)), key: version });
    const results = await Promise.all(["1.0", "2.0"].map((name) => call(nodeEntry(name))));
    expect(results).toMatchObject(
      ["1.0", "2.0"].map((version) => ({ startMode: "cold", result: foundInNode(version) })),
    );
  };
  const title = "conflict with those of no other, and go before those beside the tools";
  test(`${title}, in bubblewrap`, { tags: "promise-S31" }, (context) =>
    goFirst(openBubblewrap, context),
  );
  test(`${title}, on the bare host`, { tags: ["full", "promise-S31"] }, (context) =>
    goFirst(openBareHost, context),
  );
});

const idle = { warm: { min: 1, max: 1 } };
type IdleTool = readonly [
  name: string,
  entry: ToolEntry,
  packagesOf: (version: string) => Files,
  foundOf: (version: string) => object,
];
const usualTools: readonly IdleTool[] = [
  [
    "a Python tool by template",
    tool("tool", { module: "uses", start: "template", ...idle }),
    pythonPackages,
    foundInPython,
  ],
];
const otherTools: readonly IdleTool[] = [
  [
    "a Python tool by pool",
    tool("tool", { module: "uses", start: "pool", ...idle }),
    pythonPackages,
    foundInPython,
  ],
  ["a Node tool by pool", nodeEntry("tool", { start: "pool", ...idle }), nodePackages, foundInNode],
];

describe("packages of an idle sandbox", () => {
  const areThoseOfTheMoment = async (idleTool: IdleTool, context: TestContext): Promise<void> => {
    const [, entry, packagesOf, foundOf] = idleTool;
    const backend = await openBubblewrap(context);
    const { call, installations, starts, untilIdle } = await openToolStarts({
      backend,
      files: pythonFiles,
      nodeFiles,
    });
    for (const version of ["1.0", "2.0"]) {
      installations.set("tool", { dir: await directoryOf(packagesOf(version)), key: version });
      starts.follow([entry]);
      expect(starts.stats).toMatchObject([{ idle: 0, hits: 0 }]);
      await untilIdle(entry);
      expect(await call(entry)).toMatchObject({
        startMode: entry.start,
        result: foundOf(version),
      });
    }
  };
  const title = "of %s are those of the moment: one with others retires";
  test.for(usualTools)(title, areThoseOfTheMoment);
  test.for(otherTools)(title, { tags: "full" }, areThoseOfTheMoment);
});
