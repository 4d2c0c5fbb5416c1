/**
 * The part of a worker between manifest and call: runners, pools and a real backend, for tools of
 * which a test decides what is installed for them.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { onTestFinished, vi } from "vitest";
import { runnerGateway } from "../../../worker/invocation/steps/gateway.ts";
import { resultTextOf } from "./result-text.ts";
import type { ToolEntry } from "../../../worker/manifest/manifest.ts";
import { CodeWatch } from "../../../worker/pool/code/code-watch.ts";
import { CallSeries } from "../../../worker/pool/call-series.ts";
import { openStarts } from "../../../worker/pool/open.ts";
import type { Starts } from "../../../worker/pool/starts.ts";
import { openNodeRunner } from "../../../worker/runners/node.ts";
import { openPythonRunner } from "../../../worker/runners/python.ts";
import { type Installation, type ToolRunner, runnerArgs } from "../../../worker/runners/runner.ts";
import { HostAccess } from "../../../worker/sandbox/host-access.ts";
import { type Profile, builtInProfiles } from "../../../worker/sandbox/profile.ts";
import type { Execution, SandboxBackend } from "../../../worker/sandbox/sandbox.ts";
import type { WorkDir } from "../../../worker/sandbox/work/work-dir.ts";
import { systemClock } from "../../../worker/support/clock.ts";
import { newId } from "../../../worker/support/ids.ts";
import { createLogger } from "../../../worker/telemetry/logger.ts";
import {
  never,
  scratchDirectory,
  temporaryDirectory,
} from "../../integration/sandbox/sandbox-host.ts";
import { patience } from "../patience.ts";

/** Files by their paths below a directory. */
export type Files = Readonly<Record<string, string>>;

/** What tools are started with. */
export interface ToolStartsOptions {
  readonly backend: SandboxBackend;
  readonly files?: Files;
  readonly nodeFiles?: Files;
  readonly profile?: Profile;
  /** Interpreters that tools may name. */
  readonly pythons?: ReadonlyMap<string, string>;
  readonly nodes?: ReadonlyMap<string, string>;
  readonly workerEnvironment?: Readonly<Record<string, string>>;
}

/** A call that runs. */
export interface RunningCall {
  readonly execution: Execution;
  readonly workDir: WorkDir;
}

/** Tools that can be called. */
export interface ToolStarts {
  readonly starts: Starts;
  readonly runners: ReadonlyMap<ToolEntry["runtime"], ToolRunner>;
  /** What is installed for each tool, by name. Change it, and then tell `starts`. */
  readonly installations: Map<string, Installation>;
  /**
   * Calls a tool in a sandbox of its own. Throws with what it printed where it has no result.
   *
   * @param follow told when the call has started
   */
  call(
    entry: ToolEntry,
    args?: object,
    follow?: (call: RunningCall) => void,
  ): Promise<{ startMode: string; result: unknown }>;
  /** Fulfils when an idle sandbox of the tool waits. */
  untilIdle(entry: ToolEntry): Promise<void>;
}

const profileOf = (backend: SandboxBackend): Profile => ({
  ...builtInProfiles.get("standard")!,
  backend: backend.aheadOf === undefined ? "host" : "bubblewrap",
});

/** Opens them until the end of the test. */
export async function openToolStarts(options: ToolStartsOptions): Promise<ToolStarts> {
  const { backend, profile = profileOf(options.backend) } = options;
  const opened = new AsyncDisposableStack();
  onTestFinished(() => opened.disposeAsync());
  const installations = new Map<string, Installation>();
  const common = {
    backend,
    workerEnvironment: options.workerEnvironment ?? {},
    installationOf: ({ name }: ToolEntry) => installations.get(name),
  };
  const runnerDir = (language: string) =>
    join(import.meta.dirname, "../../../tool-runner", language);
  const python = await openPythonRunner({
    ...common,
    pythonBin: "/usr/bin/python3",
    ...(options.pythons && { named: options.pythons }),
    toolsDir: await directoryOf(options.files ?? {}),
    runnerDir: runnerDir("python"),
    scratchDir: await scratchDirectory(backend),
  });
  opened.use(python);
  const log = createLogger("silent", 1);
  const node = await openNodeRunner({
    ...common,
    nodeBin: process.execPath,
    ...(options.nodes && { named: options.nodes }),
    toolsDir: await directoryOf(options.nodeFiles ?? {}),
    runnerDir: runnerDir("node"),
    scratchDir: await scratchDirectory(backend),
    clock: systemClock,
    newId,
    log,
  });
  opened.use(node);
  const runners = new Map<ToolEntry["runtime"], ToolRunner>([
    ["python", python],
    ["node", node],
  ]);
  const versions = opened.use(new CodeWatch({ runners, clock: systemClock, log }));
  const starts = openStarts({
    runners,
    versions,
    backend,
    hostAccess: new HostAccess({ allowedMounts: [], allowedDevices: [], isForeign: false }),
    networkOf: () => undefined,
    clock: systemClock,
    log,
    suspendedCalls: () => 0,
    series: new CallSeries(systemClock),
    maxBytes: backend.aheadOf === undefined ? 0 : 2 ** 30,
    profileOf: () => profile,
  });
  opened.use(starts);
  return {
    starts,
    runners,
    installations,
    call: (entry, args = {}, follow = () => undefined) =>
      callOnce({ starts, profile, entry, args, follow }),
    untilIdle: ({ name }) =>
      vi.waitFor(() => {
        const stats = starts.stats.find(({ tool }) => tool === name);
        if ((stats?.idle ?? 0) === 0)
          throw new Error(`no idle sandbox of ${name}`, { cause: stats?.failure?.error });
      }, patience),
  };
}

/** A directory with these files, for as long as the test runs. */
export async function directoryOf(files: Files): Promise<string> {
  const directory = await temporaryDirectory();
  for (const [name, content] of Object.entries(files)) {
    await mkdir(dirname(join(directory, name)), { recursive: true });
    const isProgram = content.startsWith("#!");
    await writeFile(join(directory, name), content, { mode: isProgram ? 0o755 : 0o644 });
  }
  return directory;
}

interface Call {
  readonly starts: Starts;
  readonly profile: Profile;
  readonly entry: ToolEntry;
  readonly args: object;
  readonly follow: (call: RunningCall) => void;
}

async function callOnce({ starts, profile, entry, args, follow }: Call) {
  await using taken = await starts.acquire(entry, profile, never);
  const { sandbox, tool, startMode } = taken;
  const caller = { userId: "", sessionId: "", appName: "" };
  const invocation = {
    args: { ...args },
    toolConfig: {},
    taskId: "",
    caller,
  };
  const inside = {
    tools: tool.toolsPath,
    gateway: runnerGateway(entry, { gateway: undefined }, sandbox),
    locate: (path: string) => sandbox.locate(path),
  };
  const content = runnerArgs(entry, invocation, new Map(), inside, { maxResultBytes: 1_000_000 });
  // Nobody reads statuses here.
  const execution = await taken.start(JSON.stringify({ ...content, status_pipe: "" }));
  follow({ execution, workDir: sandbox.workDir });
  const report = await execution.exited;
  const text = await resultTextOf(sandbox, report);
  if (text === undefined) throw new Error(`no result: ${JSON.stringify(report)}`);
  const document = JSON.parse(text) as { result?: unknown };
  if (document.result === undefined)
    throw new Error(`${JSON.stringify(document)}\n${report.stderr.text}`);
  return { startMode, result: document.result };
}
