/**
 * What `npm pack` makes is complete: installed elsewhere, it runs in each way in which people call
 * a command.
 *
 * @module-tag full
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { createInterface } from "node:readline/promises";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { startDevBroker } from "../../../harness/dev-broker/dev-broker.ts";
import { offThreadAboveBytes } from "../../../worker/support/json/json-decoder.ts";
import { startScriptedWorker } from "../../integration/harness/scripted-worker.ts";
import { freePorts } from "../../support/brokers/rabbitmq-ports.ts";
import { ask } from "../../support/console/console-client.ts";
import { startCollector } from "../../support/tracing/collector.ts";
import { typeCheck } from "../../support/type-check.ts";
import { surroundWorker } from "../../support/workers/worker-surroundings.ts";
import { startLockRegistry } from "./lock-registry.ts";
import { runtimeProgram, runtimeResults, strictConfig } from "./runtime-programs.ts";
import {
  type Ending,
  nodePackage,
  olderNode,
  ownNode,
  root,
  run,
  runWell,
  userEnvironment,
} from "../../package/processes.ts";

const commands = ["str-worker", "harness"] as const;
const { name, version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
  name: string;
  version: string;
};

/**
 * A user's machine with Node 24: a project and a global prefix that both have the package
 * installed.
 */
let base: string;
let files: readonly string[];
const project = (): string => join(base, "project");
const prefix = (): string => join(base, "prefix");
const withNode24 = (): Record<string, string> =>
  userEnvironment({ PATH: [dirname(ownNode), userEnvironment()["PATH"]].join(delimiter) });

beforeAll(async () => {
  base = mkdtempSync(join(tmpdir(), "tarball-"));
  mkdirSync(project());
  writeFileSync(join(project(), "package.json"), `{"private":true}`);
  const packed = await runWell("npm", ["pack", "--json", "--pack-destination", base], {
    env: withNode24(),
  });
  files = packedFiles(packed.stdout);
  const tarball = join(
    base,
    readdirSync(base).find((file) => file.endsWith(".tgz"))!,
  );
  await using registry = await startLockRegistry();
  const options = ["--prefer-offline", "--no-audit", "--no-fund", ...registry.npmOptions];
  const install = ["install", ...options, tarball];
  await runWell("npm", install, { cwd: project(), env: withNode24() });
  await runWell("npm", [...install, "--global", "--prefix", prefix()], { env: withNode24() });
});

afterAll(() => {
  rmSync(base, { recursive: true });
});

/**
 * npm prints the list after whatever the build printed, as an array or, since npm 12, as an object
 * by package.
 */
function packedFiles(stdout: string): readonly string[] {
  const json = JSON.parse(stdout.slice(stdout.search(/^[[{]/m))) as unknown;
  const [entry] = Object.values(json as Record<string, { files: { path: string }[] }>);
  return entry!.files.map(({ path }) => path);
}

/** The files and directories of this project that a document links to. */
function linksOf(document: string): readonly string[] {
  const text = readFileSync(join(root, document), "utf8").replaceAll(/^```.*?^```/gms, "");
  return [...text.matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)]
    .map(([, link]) => link!)
    .filter((link) => !/^[a-z]+:/.test(link))
    .map((link) => join(dirname(document), link));
}

function isAt(file: string, target: string): boolean {
  return file === target || file.startsWith(target.replace(/\/?$/, "/"));
}

describe("the tarball", () => {
  test("holds the compiled program and all that it finds beside itself", () => {
    expect(files).toEqual(
      expect.arrayContaining([
        "LICENSE",
        "README.md",
        "bin/harness.mjs",
        "bin/launch.mjs",
        "bin/str-worker.mjs",
        "dist/chunks/door.py",
        "dist/chunks/inside.py",
        "dist/chunks/native/aarch64.so",
        "dist/chunks/native/x86_64.so",
        "dist/console/console.css",
        "dist/console/console.js",
        "dist/console/icon.svg",
        "dist/console/index.html",
        "dist/console/preact-license.txt",
        "dist/harness/cli.js",
        "deploy/compose.yaml",
        "deploy/grafana/dashboard.json",
        "deploy/helm/str-worker/Chart.yaml",
        "deploy/kustomize/base/kustomization.yaml",
        "deploy/prometheus/prometheus.yaml",
        "deploy/prometheus/rules.yaml",
        "deploy/systemd/str-worker.service",
        "deploy/seccomp.json",
        "Dockerfile",
        ".dockerignore",
        `dist/python/secure_tool_runtime-${version}-py3-none-any.whl`,
        "dist/worker/main.js",
        "examples/tools/manifest.yaml",
        "tool-runner/python/tool_runner/__main__.py",
      ]),
    );
  });

  test("holds what its documents link to", () => {
    const documents = files.filter((file) => file.endsWith(".md"));
    const missing = documents.flatMap((document) =>
      linksOf(document).filter((target) => !files.some((file) => isAt(file, target))),
    );
    expect(missing).toEqual([]);
  });

  test("holds no sources, tests or leftovers", () => {
    const strays = files.filter(
      (file) =>
        !/^(attacks|bin|deploy|dist|docs|examples|tool-runner)\/|^[A-Z]+(\.md)?$|^(Dockerfile|\.dockerignore|package\.json)$/.test(
          file,
        ),
    );
    expect(strays).toEqual([]);
    // Examples are there to be read, with their tests.
    const own = files.filter((file) => !file.startsWith("examples/"));
    expect(own.filter((file) => /(?<!\.d)\.ts$|\.test\./.test(file))).toEqual([]);
    expect(files.filter((file) => /__pycache__|\.pyc$/.test(file))).toEqual([]);
  });
});

describe.each(commands)("%s, installed with Node 24,", (command) => {
  test("runs through npx", async () => {
    const ending = await runWell("npx", [command, "--help"], {
      cwd: project(),
      env: withNode24(),
    });
    expect(ending.stdout).toContain(command);
  });

  test("runs by its path and tells its version", async () => {
    const path = join(project(), "node_modules", ".bin", command);
    const ending = await runWell(path, ["--version"], { cwd: base, env: withNode24() });
    expect(ending.stdout.trim()).toBe(version);
  });

  test("runs from a global installation", async () => {
    const ending = await runWell(join(prefix(), "bin", command), ["--help"], {
      cwd: base,
      env: withNode24(),
    });
    expect(ending.stdout).toContain(command);
  });
});

test("the installed demo runs the installed worker and its example tools", async () => {
  const ending = await runWell("npx", ["harness", "demo"], { cwd: project(), env: withNode24() });
  expect(ending.stdout).toMatch(/^([1-9]\d*) of \1 calls ended as they should/m);
});

test("the installed program finds the thread that parses large results", async () => {
  writeFileSync(join(project(), "large.py"), "def run(count):\n    return {'text': 'x' * count}\n");
  const count = 2 * offThreadAboveBytes;
  const command = `npx harness tool run large.py:run --args '{"count":${count}}' | wc --bytes`;
  const { stdout } = await runWell("sh", ["-c", command], { cwd: project(), env: withNode24() });
  expect(Number(stdout)).toBeGreaterThan(count);
});

test("the installed worker finds the page of its console", async () => {
  const { environment } = await surroundWorker({ well: { function: "well" } });
  const [port = 0] = await freePorts(1);
  const path = join(project(), "node_modules", ".bin", "str-worker");
  const worker = spawn(path, {
    env: { ...withNode24(), ...environment, CONSOLE_PORT: String(port) },
  });
  const exited = once(worker, "exit");
  onTestFinished(() => void worker.kill("SIGKILL"));
  for await (const line of createInterface({ input: worker.stdout }))
    if (line.includes("console.listening")) break;
  for (const [file, type] of [
    ["", "text/html"],
    ["console.js", "text/javascript"],
    ["console.css", "text/css"],
    ["icon.svg", "image/svg+xml"],
  ] as const) {
    const answer = await ask(port, { path: `/${file}` });
    expect(answer.status, file).toBe(200);
    expect(answer.headers["content-type"]).toContain(type);
  }
  worker.kill("SIGTERM");
  expect(await exited).toEqual([0, null]);
});

test("the installed worker finds the thread that exports traces, and its packages", async () => {
  const { environment, connectAgent } = await surroundWorker({ well: { function: "well" } });
  await using collector = await startCollector();
  const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint };
  const path = join(project(), "node_modules", ".bin", "str-worker");
  const worker = spawn(path, { env: { ...withNode24(), ...environment, ...endpoint } });
  const exited = once(worker, "exit");
  onTestFinished(() => void worker.kill("SIGKILL"));
  for await (const line of createInterface(worker.stdout)) {
    if (line.includes("worker.ready")) break;
  }
  await using agent = await connectAgent();
  const caller = { userId: "u", sessionId: "s", timeoutSeconds: 30 };
  expect(await agent.call({ tool: "well", args: {}, ...caller })).toMatchObject({
    kind: "success",
  });
  worker.kill("SIGTERM");
  await exited;
  expect(collector.spans.map(({ name }) => name)).toContain("process well");
});

describe("a program that imports secure-tool-runtime/client", () => {
  const program = `
    import { ToolCallError, ToolClient, type InvokeOptions } from "secure-tool-runtime/client";

    // @ts-expect-error a time is a number
    export const options: InvokeOptions = { timeoutSeconds: "5" };

    await using client = await ToolClient.connect({ broker: process.argv[2]!, namespace: "ns" });
    const { toolResult } = await client.invoke("echo", { list: [1] }, { timeoutSeconds: 60 });
    const failure: unknown = await client.invoke("fails").catch((error: unknown) => error);
    const code: string | undefined = failure instanceof ToolCallError ? failure.code : undefined;
    console.log(JSON.stringify({ toolResult, code }));
  `;
  const tsconfig = {
    compilerOptions: {
      ...{ module: "nodenext", target: "esnext", lib: ["esnext"], types: ["node"] },
      ...{ strict: true, noEmit: true },
    },
    files: ["call.mts"],
  };

  test("finds its types, and calls tools", async () => {
    const directory = join(project(), "client-program");
    mkdirSync(directory);
    writeFileSync(join(directory, "call.mts"), program);
    writeFileSync(join(directory, "tsconfig.json"), JSON.stringify(tsconfig));
    mkdirSync(join(directory, "node_modules", "@types"), { recursive: true });
    const types = join("node_modules", "@types", "node");
    symlinkSync(join(root, types), join(directory, types));
    expect(await typeCheck(directory)).toBe("");

    await using broker = await startDevBroker();
    const calls = "ns/a2a/v1/sam_remote_tool/invoke/*";
    await using _worker = await startScriptedWorker(broker.port, calls, ({ params }, reply) =>
      params["tool_name"] === "echo"
        ? reply.result({ got: params["args"] })
        : reply.error("TOOL_ERROR", "it fails"),
    );
    const ran = await runWell("node", ["call.mts", `dev://127.0.0.1:${broker.port}`], {
      cwd: directory,
      env: withNode24(),
    });
    expect(JSON.parse(ran.stdout)).toEqual({
      toolResult: { got: { list: [1] } },
      code: "TOOL_ERROR",
    });
  });
});

describe("a strict program that imports secure-tool-runtime/runtime", () => {
  /** Modules of the user's, with the types of Node; returns their directory. */
  function write(texts: Readonly<Record<string, string>>): string {
    const directory = mkdtempSync(join(project(), "runtime-"));
    for (const [file, text] of Object.entries(texts)) writeFileSync(join(directory, file), text);
    writeFileSync(join(directory, "package.json"), `{"private":true,"type":"module"}`);
    writeFileSync(join(directory, "tsconfig.json"), JSON.stringify(strictConfig));
    mkdirSync(join(directory, "node_modules", "@types"), { recursive: true });
    const types = join("node_modules", "@types", "node");
    symlinkSync(join(root, types), join(directory, types));
    return directory;
  }

  test("finds all types, runs code in sandboxes, and handles errors", async () => {
    const directory = write({ "program.ts": runtimeProgram });
    expect(await typeCheck(directory)).toBe("");
    const ran = await runWell("node", ["program.ts"], { cwd: directory, env: withNode24() });
    expect(JSON.parse(ran.stdout)).toEqual(runtimeResults);
    expect(ran.stderr).toBe("");
  });

  test("is the example, which prints what its document says", async () => {
    const example = join(project(), "node_modules", name, "examples", "runtime");
    const source = readFileSync(join(example, "best-stores.ts"), "utf8");
    const directory = write({ "best-stores.ts": source });
    expect(await typeCheck(directory)).toBe("");
    const ran = await runWell("node", ["best-stores.ts"], { cwd: directory, env: withNode24() });
    expect(readFileSync(join(example, "README.md"), "utf8")).toContain(ran.stdout);
  });

  test("is the documented backend, whose checks pass in Node's test runner", async () => {
    const page = readFileSync(join(project(), "node_modules", name, "docs/runtime.md"), "utf8");
    const [, backend] = /```ts\n\/\/ own-backend\.ts\n(.*?)```/s.exec(page)!;
    const [, checks] = /```ts\n(import \{ test \} from .*?)```/s.exec(page)!;
    const directory = write({ "own-backend.ts": backend!, "own.test.ts": checks! });
    expect(await typeCheck(directory)).toBe("");
    const options = { cwd: directory, env: withNode24() };
    const { stdout } = await runWell("node", ["--test", "own.test.ts"], options);
    expect(stdout).toMatch(/^. fail 0$/m);
  });
});

describe("an author's project whose checks leave out no declaration", () => {
  const program = `
    import { ToolClient } from "secure-tool-runtime/client";
    import { createToolContext, type Tool, type ToolContext } from "secure-tool-runtime/tool";

    export const tool: Tool<{ text: string }> = async ({ text }, ctx: ToolContext) => {
      await ctx.reportProgress({ done: 1, total: 2 });
      return { text, left: ctx.timeLeftSeconds() };
    };
    export const ctx: ToolContext = createToolContext({ onStatus: (text) => text !== "" });
    export const client: Promise<ToolClient> = ToolClient.connect({ broker: "dev", namespace: "ns" });
  `;
  const tsconfig = {
    compilerOptions: {
      ...{ target: "esnext", module: "nodenext", types: ["node"], noEmit: true },
      ...{ strict: true, skipLibCheck: false, allowJs: true, checkJs: true },
      ...{ allowImportingTsExtensions: true, erasableSyntaxOnly: true, verbatimModuleSyntax: true },
      ...{ exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true },
    },
  };

  /** What tsc says of the example tools and these files. */
  async function check(files: Readonly<Record<string, string>>): Promise<string> {
    const directory = mkdtempSync(join(project(), "author-"));
    const examples = join("examples", "tools", "node");
    cpSync(join(project(), "node_modules", name, examples), directory, { recursive: true });
    for (const [file, text] of Object.entries(files)) writeFileSync(join(directory, file), text);
    writeFileSync(join(directory, "package.json"), `{"private":true,"type":"module"}`);
    writeFileSync(join(directory, "tsconfig.json"), JSON.stringify(tsconfig));
    mkdirSync(join(directory, "node_modules", "@types"), { recursive: true });
    const types = join("node_modules", "@types", "node");
    symlinkSync(join(root, types), join(directory, types));
    return typeCheck(directory);
  }

  test("has the examples and both modules without a complaint", async () => {
    expect(await check({ "program.ts": program })).toBe("");
  });

  test("finds a mistake", async () => {
    const wrong = program.replace("done: 1", 'done: "1"');
    expect(await check({ "program.ts": wrong })).toMatch(/program\.ts\(\d+,\d+\): error TS2322: /);
  });
});

describe("what is printed to be typed names the command", () => {
  const makeTool = async (command: string, cwd: string, more: string): Promise<string> => {
    const path = [more, dirname(ownNode), userEnvironment()["PATH"]].join(delimiter);
    const args = ["tool", "new", "typed", "--runtime", "node", "--dir", join(cwd, "typed")];
    const env = userEnvironment({ PATH: path });
    return (await runWell(command, args, { cwd, env })).stdout;
  };

  test("as npx finds it in the project", async () => {
    const local = join(project(), "node_modules", ".bin");
    expect(await makeTool(join(local, "harness"), project(), local)).toMatch(
      /^ {2}npx harness dev/m,
    );
  });

  test("as the shell finds it, with a dependency that a team can share", async () => {
    const [elsewhere, bin] = [mkdtempSync(join(base, "elsewhere-")), join(prefix(), "bin")];
    const printed = await makeTool("harness", elsewhere, bin);
    expect(printed).toMatch(/^ {2}harness dev/m);
    expect(printed).toMatch(
      new RegExp(`^ {2}npm install .* secure-tool-runtime@${version} @types/node@24$`, "m"),
    );
  });
});

describe.each(["python", "node"])("a new %s tool of the installed package", (runtime) => {
  test.for(["beside it", "elsewhere"])(
    "is tested and run by the commands that are printed, %s",
    async (place) => {
      const directory = place === "beside it" ? project() : base;
      const harness = join(project(), "node_modules", ".bin", "harness");
      const args = ["tool", "new", `my-${runtime}`, "--runtime", runtime];
      const { stdout } = await runWell(harness, args, { cwd: directory, env: withNode24() });
      const typed = [...stdout.matchAll(/^ {2}(\S.*)$/gm)].map(([, command]) => command!);
      const runCommand = typed.find((command) => command.includes(" tool run "));
      const testCommand = typed.find((command) => command.includes(" tool test"));
      // The launcher needs Node 24, or one beside the package.
      const shell = (command: string): Promise<Ending> =>
        runWell("sh", ["-c", command], { cwd: directory, env: withNode24() });
      const tested = await shell(testCommand!);
      expect(tested.stdout).toMatch(/^\d+ passed, 0 failed, 0 skipped$/m);
      const ran = await shell(runCommand!);
      expect(JSON.parse(ran.stdout)).toEqual({ status: "success", count: 3 });
    },
  );
});

describe.each(commands)("%s, called with an older Node,", (command) => {
  test("says what to install", async ({ skip }) => {
    const older = olderNode(skip);
    const script = join(project(), "node_modules", name, "bin", `${command}.mjs`);
    const ending = await run(older, [script, "--help"], { cwd: base });
    expect(ending).toMatchObject({ status: 69, stdout: "" });
    expect(ending.stderr).toContain(`npm install --prefix ${project()} ${nodePackage}@24`);
  });

  test("runs under the Node 24 that was put beside it", async ({ skip }) => {
    const older = olderNode(skip);
    const node24 = join(prefix(), "lib", "node_modules", "node");
    if (!existsSync(node24)) symlinkSync(join(root, "node_modules", "node"), node24);
    const ending = await runWell(older, [join(prefix(), "bin", command), "--version"], {
      cwd: base,
    });
    expect(ending.stdout.trim()).toBe(version);
  });
});
