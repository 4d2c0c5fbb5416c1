/**
 * Templates of a real backend with the real runners, and calls of their children, for tests.
 */
import { cp, mkdir, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { type TestContext, onTestFinished } from "vitest";
import type { Limits } from "../../../worker/protocol/resource-limits.ts";
import { openNodeRunner } from "../../../worker/runners/node.ts";
import { openPythonRunner } from "../../../worker/runners/python.ts";
import type { ToolRunner } from "../../../worker/runners/runner.ts";
import type { BubblewrapBackend } from "../../../worker/sandbox/bubblewrap/backend.ts";
import { builtInProfiles } from "../../../worker/sandbox/profile.ts";
import {
  type ExitReport,
  type ParkedSandbox,
  type Sandbox,
  type Template,
  workDirInside,
} from "../../../worker/sandbox/sandbox.ts";
import { workDirNames } from "../../../worker/sandbox/work/work-dir.ts";
import { systemClock } from "../../../worker/support/clock.ts";
import { newId } from "../../../worker/support/ids.ts";
import { createLogger } from "../../../worker/telemetry/logger.ts";
import {
  never,
  scratchDirectory,
  sharedBackends,
  temporaryDirectory,
} from "../../integration/sandbox/sandbox-host.ts";
import { tool } from "../../unit/manifest/fixtures.ts";
import { resultTextOf } from "../runners/result-text.ts";

const runnersDir = join(import.meta.dirname, "../../../tool-runner");
/** Runs the Node tools of templates; the project's own unless said otherwise. */
let node = join(import.meta.dirname, "../../../node_modules/node/bin/node");

/** From now on, Node tools of the test file run by this program. */
export function runNodeBy(program: string): void {
  node = program;
}

/** Becomes a function of a Python module. */
const becoming = join(import.meta.dirname, "../../fixtures/template/become.mjs");
let becomesPython = false;

/** From now on, Python modules of the test file are run in sandboxes of Node, which become them. */
export function runPythonInNode(): void {
  becomesPython = true;
}

/** Whether {@link runPythonInNode} was called. */
export function isPythonInNode(): boolean {
  return becomesPython;
}

/** What a template is opened for. */
export interface TemplateHostOptions {
  /** Of the module; `python` unless given. */
  readonly runtime?: "python" | "node";
  /** Text of the module `tool`; other modules by their paths below the directory of tools. */
  readonly files: Readonly<Record<string, string>>;
  /** A directory whose modules are there as well. */
  readonly toolsFrom?: string;
  /** A directory that the module finds at /packages. */
  readonly packages?: string;
  /** The module that is loaded; `tool` unless given. */
  readonly module?: string;
  readonly profile?: string;
  readonly limits?: Partial<Limits>;
  readonly withoutCgroups?: boolean;
}

/** What a call came to. */
export interface Answer<T> {
  readonly report: ExitReport;
  /** What the tool returned, or undefined when it gave no answer. */
  readonly result: T;
  readonly error: string | undefined;
}

/**
 * One tool in a backend. What it hands out is disposed by the caller, the rest by the end of the
 * test.
 */
export interface TemplateHost {
  openTemplate(signal?: AbortSignal): Promise<Template>;
  /** A sandbox of the same tool that is made for one call. */
  acquireCold(): Promise<Sandbox>;
  /** A sandbox that waits as one of a pool. The caller disposes it. */
  park(): Promise<ParkedSandbox>;
  /**
   * Runs a function of the module in a child, or in a cold sandbox when there is no template, and
   * disposes that.
   */
  call<T>(template: Template | undefined, name: string, args?: object): Promise<Answer<T>>;
  /** Wakes a child that somebody else disposes. */
  wake(
    parked: ParkedSandbox,
    name: string,
    args?: object,
    signal?: AbortSignal,
  ): ReturnType<ParkedSandbox["wake"]>;
}

/** Opens one. Skips the test where bubblewrap cannot make sandboxes. */
export type OpenTemplateHost = (
  context: TestContext,
  options: TemplateHostOptions,
) => Promise<TemplateHost>;

/** Template hosts for the tests of a file, on backends that they share. */
export function templateHosts(open = sharedBackends()): OpenTemplateHost {
  return async (context, options) =>
    openTemplateHost(await open(context, options.withoutCgroups), options);
}

async function openTemplateHost(
  backend: BubblewrapBackend,
  options: TemplateHostOptions,
): Promise<TemplateHost> {
  const becomes = becomesPython && options.runtime === undefined;
  const { runtime = becomes ? "node" : "python", files, limits } = options;
  const language = runtime === "node" ? "javascript" : "python";
  const { module: called = runtime === "node" && !becomes ? "tool.mjs" : "tool" } = options;
  const module = becomes ? basename(becoming) : called;
  const toolsDir = await temporaryDirectory();
  if (becomes) await cp(becoming, join(toolsDir, module));
  if (options.toolsFrom !== undefined) await cp(options.toolsFrom, toolsDir, { recursive: true });
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(toolsDir, name)), { recursive: true });
    await writeFile(join(toolsDir, name), text);
  }
  const runner = await openRunner(backend, toolsDir, runtime);
  const named = builtInProfiles.get(options.profile ?? "restrictive")!;
  const profile = { ...named, limits: { ...named.limits, ...limits } };
  const prepared = await runner.prepare(tool("tool", { runtime, module }), profile);
  onTestFinished(async () => {
    await prepared[Symbol.asyncDispose]();
    await runner[Symbol.asyncDispose]();
  });
  const { packages } = options;
  const mounts = packages === undefined ? [] : [{ source: packages, target: "/packages" }];
  const request = { ...prepared, mounts: [...prepared.mounts, ...mounts], profile, devices: [] };

  const describedCall = (name: string, args: object): string =>
    JSON.stringify({
      ...(becomes
        ? argumentsOf(module, "become", { module: called, name, args }, language)
        : argumentsOf(module, name, args, language)),
      tools_dir: prepared.toolsPath,
    });
  return {
    openTemplate: (signal = never) =>
      backend.aheadOf!(profile)!.openTemplate(request, prepared.template!, signal),
    acquireCold: () => backend.acquire(request, never),
    park: () => backend.aheadOf!(profile)!.park(request, prepared.park!, never),
    async call<T>(template: Template | undefined, name: string, args = {}): Promise<Answer<T>> {
      if (template !== undefined) {
        await using parked = await template.park(never);
        const execution = await parked.wake(describedCall(name, args));
        return await answerOf<T>(parked, await execution.exited);
      }
      await using sandbox = await backend.acquire(request, never);
      await sandbox.workDir.writeArguments(describedCall(name, args));
      return await answerOf<T>(sandbox, await (await sandbox.start(prepared.launch)).exited);
    },
    wake: (parked, name, args = {}, signal) => parked.wake(describedCall(name, args), signal),
  };
}

async function openRunner(
  backend: BubblewrapBackend,
  toolsDir: string,
  runtime: "python" | "node",
): Promise<ToolRunner> {
  const scratchDir = await scratchDirectory(backend);
  const parts = { toolsDir, scratchDir, backend, workerEnvironment: {} };
  if (runtime !== "node") {
    const runnerDir = join(runnersDir, "python");
    return openPythonRunner({ ...parts, runnerDir, pythonBin: "/usr/bin/python3" });
  }
  const runnerDir = join(runnersDir, "node");
  const log = createLogger("silent", 1);
  return openNodeRunner({ ...parts, runnerDir, nodeBin: node, clock: systemClock, newId, log });
}

function argumentsOf(module: string, name: string, args: object, language: string) {
  const inWork = (file: string): string => join(workDirInside, file);
  const called =
    module === ""
      ? { program: { language }, args: { code: name, inputs: args } }
      : { module, function: name, args };
  return {
    ...called,
    status_pipe: inWork(workDirNames.status),
    result_file: inWork(workDirNames.result),
    output_dir: inWork(workDirNames.output),
  };
}

async function answerOf<T>(
  sandbox: Pick<Sandbox, "workDir">,
  report: ExitReport,
): Promise<Answer<T>> {
  const text = await resultTextOf(sandbox, report);
  if (text === undefined) return { report, result: undefined as T, error: "there is no answer" };
  const { result, error } = JSON.parse(text) as { result: T; error?: string };
  return { report, result, error };
}
