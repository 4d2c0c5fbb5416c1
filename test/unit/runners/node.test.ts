/**
 * Node tools: what their sandboxes hold, and which of them this host can serve.
 */
import { chmod, mkdir, mkdtemp, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { toPackageSet } from "../../../worker/manifest/fields/packages.ts";
import type { ToolEntry } from "../../../worker/manifest/manifest.ts";
import {
  type NodeRunnerOptions,
  awayFromStdin,
  openNodeRunner,
} from "../../../worker/runners/node.ts";
import { publicRefusal } from "../../../worker/protocol/refusal.ts";
import { builtInProfiles, restrictiveProfile } from "../../../worker/sandbox/profile.ts";
import type {
  ExitReport,
  SandboxBackend,
  SandboxRequest,
} from "../../../worker/sandbox/sandbox.ts";
import { systemClock } from "../../../worker/support/clock.ts";
import { newId } from "../../../worker/support/ids.ts";
import { createLogger } from "../../../worker/telemetry/logger.ts";
import { tool as anyTool } from "../manifest/fixtures.ts";
import { unmeasured } from "../../support/sandboxes/usage.ts";
import { patience } from "../../support/patience.ts";

const never = new AbortController().signal;
const profile = builtInProfiles.get("standard")!;
const runnerDir = fileURLToPath(new URL("../../../tool-runner/node", import.meta.url));
const parserDir = fileURLToPath(new URL("../../../node_modules/@babel/parser", import.meta.url));

const tool = (changes: Partial<ToolEntry> = {}): ToolEntry =>
  anyTool("tool", { runtime: "node", module: "tool.js", ...changes });

/** A backend that shares as copies would be, counts what is in use, and makes no sandbox. */
class CountingBackend implements Pick<SandboxBackend, "share" | "acquire"> {
  readonly inUse: string[] = [];
  readonly requests: SandboxRequest[] = [];

  share: SandboxBackend["share"] = async (path) => {
    this.inUse.push(path);
    return {
      source: `/shared${path}`,
      [Symbol.asyncDispose]: async () => {
        this.inUse.splice(this.inUse.indexOf(path), 1);
      },
    };
  };

  acquire: SandboxBackend["acquire"] = async (request) => {
    this.requests.push(request);
    throw new Error("no sandboxes here");
  };
}

async function temporaryDirectory(): Promise<string> {
  const directory = await realpath(await mkdtemp(join(tmpdir(), "str-node-")));
  onTestFinished(() => rm(directory, { recursive: true }));
  return directory;
}

/** Options of a runner on a backend that counts, with one tool, `tool.js`. */
async function newOptions(changes: Partial<NodeRunnerOptions> = {}) {
  const toolsDir = await temporaryDirectory();
  await writeFile(join(toolsDir, "tool.js"), "export const run = () => ({});");
  const backend = new CountingBackend();
  const options = {
    nodeBin: process.execPath,
    toolsDir,
    runnerDir,
    scratchDir: toolsDir,
    backend,
    clock: systemClock,
    newId,
    log: createLogger("silent", 1),
    workerEnvironment: {},
    ...changes,
  };
  return { backend, toolsDir, options };
}

/** A program that says what it is as Node would. */
async function programThatIs(version: string, executable: string): Promise<string> {
  const path = join(await temporaryDirectory(), "node");
  await writeFile(path, `#!/bin/sh\necho '${JSON.stringify({ version, executable })}'\n`);
  await chmod(path, 0o755);
  return path;
}

describe("a Node program", () => {
  test("is described to the operator by its version and place", async () => {
    const { options } = await newOptions();
    await using runner = await openNodeRunner(options);
    expect(runner.runtime).toBe("node");
    expect(runner.description).toBe(`Node ${process.versions.node} (${process.execPath})`);
  });

  test("outside /usr is mounted by itself, without what lies beside it, once for all calls", async () => {
    const nodeBin = await programThatIs("24.1.0", "/opt/node/bin/node");
    const { options, backend, toolsDir } = await newOptions({ nodeBin });
    const runner = await openNodeRunner(options);
    expect(backend.inUse).toEqual(["/opt/node/bin/node", runnerDir, parserDir]);
    await using prepared = await runner.prepare(tool(), profile);
    expect(prepared.mounts).toEqual([
      { source: "/shared/opt/node/bin/node", target: "/sandbox/interpreter/node" },
      { source: `/shared${runnerDir}`, target: "/sandbox/runner" },
      { source: `/shared${runnerDir}`, target: "/tools/node_modules/secure-tool-runtime" },
      { source: `/shared${toolsDir}`, target: "/tools/node" },
    ]);
    expect(prepared.environment.get("PATH")).toBe(
      "/sandbox/interpreter:/usr/local/bin:/usr/bin:/bin",
    );
    expect(prepared.launch.argv[0]).toBe("/sandbox/interpreter/node");
    await prepared[Symbol.asyncDispose]();
    await runner[Symbol.asyncDispose]();
    expect(backend.inUse).toEqual([]);
  });

  test("in /usr is where it is", async () => {
    const nodeBin = await programThatIs("26.0.0", "/usr/local/bin/node");
    const { options, backend } = await newOptions({ nodeBin });
    await using runner = await openNodeRunner(options);
    expect(backend.inUse).toEqual([runnerDir, parserDir]);
    await using prepared = await runner.prepare(tool(), profile);
    expect(prepared.launch.argv[0]).toBe("/usr/local/bin/node");
    expect(prepared.environment.get("PATH")).toBe("/usr/local/bin:/usr/bin:/bin");
  });

  test("that is too old is refused by its version", async () => {
    const nodeBin = await programThatIs("22.19.0", "/usr/bin/node");
    const { options, backend } = await newOptions({ nodeBin });
    await expect(openNodeRunner(options)).rejects.toMatchObject({
      name: "SandboxError",
      message: `${nodeBin} is Node 22.19.0; tools need Node 24 or later`,
      setting: "nodeBin",
    });
    expect(backend.inUse).toEqual([]);
  });

  test.each(["/no/such/node", "/usr/bin/false", "/usr/bin/true", "/usr/bin/env"])(
    "that is none is refused by name: %s",
    async (nodeBin) => {
      const { options } = await newOptions({ nodeBin });
      await expect(openNodeRunner(options)).rejects.toMatchObject({
        name: "SandboxError",
        message: `cannot use ${nodeBin} as the Node program`,
        setting: "nodeBin",
      });
    },
  );
});

describe("a call of a Node tool", () => {
  test.each([
    ["restrictive", 384],
    ["standard", 768],
    ["permissive", 3072],
  ])("has under %s %d MiB for its objects, and no signal opens a debugger", async (name, heap) => {
    const { options } = await newOptions();
    await using runner = await openNodeRunner(options);
    await using prepared = await runner.prepare(tool(), builtInProfiles.get(name)!);
    expect(prepared.launch.argv.slice(1)).toEqual([
      `--max-old-space-size=${heap}`,
      "--disable-sigusr1",
      "/sandbox/runner/main.js",
      "/sandbox/work/runner_args.json",
    ]);
    expect(prepared.memoryBound).toBe("resident");
  });

  test("can be waited for, by the same program with the socket away from standard input", async () => {
    const { options } = await newOptions();
    await using runner = await openNodeRunner(options);
    await using prepared = await runner.prepare(tool({ module: "deep/tool.ts" }), profile);
    const argv = prepared.park?.argv ?? [];
    expect(argv.slice(0, awayFromStdin.length)).toEqual(awayFromStdin);
    expect(argv.slice(awayFromStdin.length)).toEqual([
      ...prepared.launch.argv.slice(0, -1),
      ...["--park", "deep/tool.ts", "/tools/node", "/sandbox/work/runner_args.json"],
    ]);
  });

  test("has the tools for as long as it runs", async () => {
    const { options, backend, toolsDir } = await newOptions();
    await using runner = await openNodeRunner(options);
    const shared = backend.inUse.length;
    const first = await runner.prepare(tool(), profile);
    const second = await runner.prepare(tool(), profile);
    expect(backend.inUse.slice(shared)).toEqual([toolsDir, toolsDir]);
    await first[Symbol.asyncDispose]();
    await second[Symbol.asyncDispose]();
    expect(backend.inUse).toHaveLength(shared);
  });

  test("has an environment of its own, and of the worker's what its manifest entry names", async () => {
    const workerEnvironment = {
      API_URL: "https://api.example",
      EMPTY: "",
      NODE_OPTIONS: "--inspect",
      SOLACE_PASSWORD: "secret",
    };
    const { options } = await newOptions({ workerEnvironment });
    await using runner = await openNodeRunner(options);
    await using prepared = await runner.prepare(
      tool({ env: ["API_URL", "EMPTY", "NOT_SET"] }),
      profile,
    );
    expect(Object.fromEntries(prepared.environment)).toEqual({
      PATH: expect.stringMatching(
        /^(?:\/sandbox\/interpreter:)?\/usr\/local\/bin:\/usr\/bin:\/bin$/,
      ),
      HOME: "/tmp",
      TMPDIR: "/tmp",
      LANG: "C.UTF-8",
      API_URL: "https://api.example",
      EMPTY: "",
    });
  });

  test.each([
    [
      "SIGABRT",
      "FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory",
      true,
    ],
    ["SIGTRAP", "# Fatal JavaScript out of memory: CALL_AND_RETRY_LAST", true],
    ["SIGABRT", "FATAL ERROR: v8::FromJust Maybe value is Nothing", false],
    [
      undefined,
      "FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory",
      false,
    ],
  ])("that ends by %s with the words %j was out of memory: %s", async (signal, words, isSo) => {
    const { options } = await newOptions();
    await using runner = await openNodeRunner(options);
    await using prepared = await runner.prepare(tool(), profile);
    const report: ExitReport = {
      started: true,
      exitCode: signal === undefined ? 1 : undefined,
      signal,
      exceeded: undefined,
      usage: unmeasured,
      stdout: { text: "", droppedBytes: 0 },
      stderr: {
        text: `<--- Last few GCs --->\n${words}\n----- Native stack trace -----\n`,
        droppedBytes: 0,
      },
    };
    expect(prepared.boundReached?.(report)).toBe(isSo ? "memoryBytes" : undefined);
  });
});

describe("a Node tool with packages of its own", () => {
  const installationOf = () => ({ dir: "/environments/abc", key: "abc" });
  const seen = async (changes: Partial<ToolEntry>, hasShared: boolean) => {
    const { options, toolsDir } = await newOptions({ installationOf });
    if (hasShared) await mkdir(join(toolsDir, "node_modules"));
    await using runner = await openNodeRunner(options);
    await using prepared = await runner.prepare(tool(changes), profile);
    return prepared;
  };
  const own = { source: "/shared/environments/abc/node_modules", target: "/node_modules" };

  test("does not run without them where they are to be installed", async () => {
    const { options } = await newOptions({ installsPackages: true });
    await using runner = await openNodeRunner(options);
    const packages = toPackageSet("node", { package: "a" });
    await expect(runner.prepare(tool({ packages }), profile)).rejects.toThrow(/not installed/);
    await using _prepared = await runner.prepare(tool(), profile);
  });

  test("has them above its files, and its programs on the path", async () => {
    const { mounts, environment } = await seen({}, false);
    expect(mounts.slice(-2)).toEqual([expect.objectContaining({ target: "/tools/node" }), own]);
    expect(environment.get("PATH")).toMatch(/(?:^|:)\/node_modules\/\.bin:\/usr\/local\/bin:/);
    expect(environment.get("TOOL_PACKAGES_DIR")).toBe("/node_modules");
  });

  test("sees nothing of those beside its files", async () => {
    const nothing = expect.stringMatching(/no-packages$/);
    expect((await seen({}, true)).mounts.slice(-2)).toEqual([
      own,
      { source: nothing, target: "/tools/node/node_modules" },
    ]);
    expect((await seen({ isolate: true }, true)).mounts.at(-1)).toEqual(own);
  });

  test("has its module compiled with them, and not with those of another or former ones", async () => {
    const keys: Record<string, string> = { a: "abc", b: "def" };
    const { options, backend } = await newOptions({
      installationOf: ({ name }) => {
        const key = keys[name] ?? "";
        return { dir: `/environments/${key}`, key };
      },
    });
    await using runner = await openNodeRunner(options);
    const compiled: string[] = [];
    const compile = async (name: string) => {
      runner.warm?.({ ...tool(), name });
      compiled.push(`/shared/environments/${keys[name]}/node_modules`);
      const mounts = () => backend.requests.flatMap((request) => request.mounts);
      const sources = () =>
        mounts().flatMap(({ source, target }) => (target === own.target ? [source] : []));
      await vi.waitFor(() => expect(sources()).toEqual(compiled), patience);
    };
    for (const name of ["a", "b"]) await compile(name);
    for (const key of ["ghi", "abc"]) {
      keys["a"] = key;
      await compile("a");
    }
  });
});

describe("a module", () => {
  test(
    "is run ahead with nothing of a call, of a caller or of the worker, and without a network",
    { tags: "promise-C2" },
    async () => {
      const workerEnvironment = { API_KEY: "secret" };
      const { options, backend } = await newOptions({ workerEnvironment });
      await using runner = await openNodeRunner(options);
      runner.warm?.(tool({ env: ["API_KEY"] }));
      await vi.waitFor(() => expect(backend.requests).toHaveLength(1), patience);
      const [request] = backend.requests;
      expect(request).toMatchObject({ profile: restrictiveProfile, memoryBound: "resident" });
      expect(Object.fromEntries(request!.environment)).toEqual({
        PATH: expect.any(String),
        HOME: "/tmp",
        TMPDIR: "/tmp",
        LANG: "C.UTF-8",
        NODE_COMPILE_CACHE: "/sandbox/work/output",
      });
    },
  );

  test("of a toolset is run ahead in each of its states, and where the toolset is there", async () => {
    const copies = new Map<string, string>();
    const leaseToolset: NodeRunnerOptions["leaseToolset"] = ({ revision }) => {
      const directory = copies.get(revision);
      return directory === undefined ? undefined : { directory, [Symbol.dispose]: () => undefined };
    };
    const { options, backend } = await newOptions({ leaseToolset });
    await using runner = await openNodeRunner(options);
    const sources = () =>
      backend.requests.flatMap(({ mounts }) =>
        mounts.filter(({ target }) => target === "/tools/node").map(({ source }) => source),
      );
    for (const revision of ["1", "2"]) {
      const directory = await temporaryDirectory();
      await writeFile(join(directory, "tool.js"), "export const run = () => ({});");
      copies.set(revision, directory);
    }
    const expected: (string | undefined)[] = [];
    // What was compiled of a former state is not kept.
    for (const revision of ["1", "2", "gone", "1"]) {
      runner.warm?.(tool({ toolset: { name: "kit", revision } }));
      if (copies.has(revision)) expected.push(copies.get(revision));
      await vi.waitFor(() => expect(sources()).toEqual(expected), patience);
    }
  });

  test("that cannot be run ahead is called like others", async () => {
    const { options, backend } = await newOptions();
    await using runner = await openNodeRunner(options);
    runner.warm?.(tool());
    await vi.waitFor(() => expect(backend.requests).toHaveLength(1), patience);
    await using prepared = await runner.prepare(tool(), profile);
    expect(prepared.mounts.map(({ target }) => target)).not.toContain("/sandbox/compile-cache");
    expect(prepared.environment.has("NODE_COMPILE_CACHE")).toBe(false);
  });

  test("is served where its file is, also by a link within the directory", async () => {
    const { options, toolsDir } = await newOptions();
    await using runner = await openNodeRunner(options);
    await mkdir(join(toolsDir, "deep"));
    await symlink("../tool.js", join(toolsDir, "deep", "linked.js"));
    expect(await runner.refuse(tool(), never)).toBeUndefined();
    expect(await runner.refuse(tool({ module: "deep/linked.js" }), never)).toBeUndefined();
  });

  test.each([
    ["absent.js", "absent.js is not there"],
    ["directory.js", "directory.js is not a file"],
    ["dangling.js", "dangling.js is not there"],
    ["outside.js", "outside.js is a link to outside of the directory of Node tools"],
  ])("is not served as %s: %s", async (module, reason) => {
    const { options, toolsDir } = await newOptions();
    await using runner = await openNodeRunner(options);
    await mkdir(join(toolsDir, "directory.js"));
    await symlink("nowhere.js", join(toolsDir, "dangling.js"));
    await symlink("/etc/hostname", join(toolsDir, "outside.js"));
    expect(await runner.refuse(tool({ module }), never)).toEqual(publicRefusal(reason));
  });
});
