/**
 * Runs the real tool runners, with the files of the seam and no sandbox.
 */
import { type ChildProcessByStdio, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { constants, mkdtempSync, openSync, readFileSync, readSync } from "node:fs";
import { mkdir, mkdtemp, readFile, realpath, rename, rm, writeFile } from "node:fs/promises";
import { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Duplex, Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import type { TestContext } from "vitest";
import { CallEnd } from "../../../worker/sandbox/bubblewrap/idle/call-end.ts";
import { type Ended, ForkedRuns } from "./forks/forked-runs.ts";

const project = join(import.meta.dirname, "../../..");

/** Python programs that the tests run. */
export const fixtures = join(project, "test/fixtures/python");
/** The directory that tools import `secure_tool_runtime` from. */
export const runnerDir = join(project, "tool-runner/python");
export const runnerEntry = join(runnerDir, "tool_runner/__main__.py");
export const python = "/usr/bin/python3";

/** How a tool is run where the default does not do. */
export interface RunOptions {
  readonly args?: object;
  readonly toolConfig?: object;
  /**
   * Content of the input artifacts by parameter; their filename is `PARAMETER.txt` where none is
   * given.
   */
  readonly artifacts?: Readonly<Record<string, { filename: string; content: string | Uint8Array }>>;
  readonly toolsDir?: string;
  /** Members of runner_args.json that replace the usual ones; undefined leaves one out. */
  readonly members?: Readonly<Record<string, unknown>>;
  /** Changes the members of runner_args.json in place, after everything else. */
  readonly rewrite?: (members: Record<string, unknown>) => void;
  /** What runner_args.json holds, in place of all of the above. */
  readonly argsText?: string;
  /** A command that the runner is started by, such as prlimit with its limits. */
  readonly prefix?: readonly string[];
  /** What Python runs; the runner's own file where not given. */
  readonly entry?: string;
  /** Whether somebody has the status pipe open; true where not given. */
  readonly isStatusRead?: boolean;
  /** Called with the work directory when the process has been started. */
  readonly onStart?: (workDir: string) => void;
  /** Whether the reader of stdout is gone before the tool starts. */
  readonly isStdoutClosed?: boolean;
}

/** What a run left. */
export interface ToolRun {
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
  /** Bytes of result.json, or undefined when there is none. */
  readonly resultText: string | undefined;
  /** What result.json says, or undefined when there is none. */
  readonly document: Record<string, unknown> | undefined;
  /** Lines of the status pipe as they came. */
  readonly statusLines: readonly string[];
  readonly workDir: string;
  readonly durationMs: number;
}

/** The texts of a run's statuses. */
export function statuses(run: ToolRun): readonly string[] {
  return run.statusLines.map((line) => (JSON.parse(line) as { status: string }).status);
}

/** A language's runner, and where the tools of its tests are. */
export interface RunnerUnderTest {
  /** What starts the runner; the path of the arguments file follows. */
  readonly command: readonly string[];
  readonly toolsDir: string;
  /**
   * What starts a runner that waits for its call; `MODULE TOOLS_DIR RUNNER_ARGS_FILE` follows. With
   * it, a tool is called that way where it can be, and otherwise as without.
   */
  readonly park?: readonly string[];
  /** Milliseconds that it waits. */
  readonly waitMs?: number;
  /** What runs a tool where nothing asks for a process that was started for it. */
  readonly forked?: ForkedRuns;
}

/** Runs one Python tool to its end. The work directory stays until `removeWorkDirs`. */
export function runTool(
  module: string,
  functionName: string,
  options: RunOptions = {},
): Promise<ToolRun> {
  const command = [python, "-I", "-B", options.entry ?? runnerEntry];
  const ways = { started: {}, parked: { park: [...command, "--park"] }, forked: { forked } };
  const runner = { command, toolsDir: fixtures, ...ways[way ?? "started"] };
  return runToolWith(runner, module, functionName, options);
}

/** How the test file's Python runners come to be; that of a test which says so first. */
let way: "started" | "parked" | "forked" | undefined;
const forked = new ForkedRuns(python, runnerEntry);

/** Python runners of the test file wait for their calls where they can. */
export function parkRunners(): void {
  way ??= "parked";
}

/**
 * Each Python runner of the test file is started for its call, also where a test would rather fork
 * it.
 */
export function startRunners(): void {
  way ??= "started";
}

/** Python runners of the test file are forks of one process where they can. */
export function forkRunners(): void {
  way ??= "forked";
}

/** Skips a test of `result.json` where Python runners of the test file wait for their calls. */
export function requiresResultFile(context: Pick<TestContext, "skip">): void {
  context.skip(way === "parked", "a runner that has waited answers by its wake channel");
}

/** Skips a test of a worker that is gone where it has just given the call by the wake channel. */
export function requiresWorkerByPipe(context: Pick<TestContext, "skip">): void {
  context.skip(way === "parked", "a runner that has waited knows that its worker is there");
}

/** Runs one tool of any language to its end. The work directory stays until `removeWorkDirs`. */
export async function runToolWith(
  runner: RunnerUnderTest,
  module: string,
  functionName: string,
  options: RunOptions,
): Promise<ToolRun> {
  const workDir = await createWorkDir();
  const argsFile = join(workDir, "runner_args.json");
  const members: Record<string, unknown> = {
    module,
    function: functionName,
    args: options.args ?? {},
    tool_config: options.toolConfig ?? {},
    ...(await stage(workDir, options.artifacts ?? {})),
    status_pipe: join(workDir, "status.pipe"),
    result_file: join(workDir, "result.json"),
    output_dir: join(workDir, "output"),
    user_id: "user-42",
    session_id: "web-1",
    app_name: "AgentA",
    task_id: "task-7",
    tools_dir: options.toolsDir ?? runner.toolsDir,
    max_result_bytes: 10_000_000,
    ...options.members,
  };
  options.rewrite?.(members);
  const prefix = options.prefix ?? [];
  const toolsDir = String(members["tools_dir"]);
  const waiting = runner.park && [...prefix, ...runner.park, module, toolsDir, argsFile];
  const parked = waiting && (await startParked(waiting, workDir));
  if (runner.waitMs !== undefined) await sleep(runner.waitMs);
  const argsText = options.argsText ?? JSON.stringify(members);
  const isParked = parked?.isReady === true;
  if (!isParked) await writeFile(argsFile, argsText);
  const reader = options.isStatusRead === false ? undefined : readStatuses(workDir);

  const startedMs = performance.now();
  const isForked = prefix.length === 0 && options.isStdoutClosed !== true;
  const running =
    runner.forked !== undefined && isForked
      ? runner.forked.run(workDir, argsFile, env)
      : isParked
        ? callParked(parked, argsText, options)
        : untilEnd(start([...prefix, ...runner.command, argsFile], workDir), options);
  options.onStart?.(workDir);
  const { exitCode, signal, stdout, stderr, given }: AnsweredEnd = await running;
  const durationMs = performance.now() - startedMs;

  const resultText =
    given ?? (await readFile(join(workDir, "result.json"), "utf8").catch(() => undefined));
  return {
    exitCode,
    signal,
    stdout,
    stderr,
    resultText,
    document:
      resultText === undefined ? undefined : (JSON.parse(resultText) as Record<string, unknown>),
    statusLines: reader?.finish() ?? [],
    workDir,
    durationMs,
  };
}

/** How a runner ended, and what it gave in place of result.json. */
interface AnsweredEnd extends Ended {
  readonly given?: string | undefined;
}

/** Makes a call of a runner that waits for it. When it is done, it sees that nobody ends it. */
async function callParked(
  { child, channel }: Awaited<ReturnType<typeof startParked>>,
  argsText: string,
  options: RunOptions,
): Promise<AnsweredEnd> {
  const callEnd = new CallEnd(channel, Infinity);
  const closed = once(channel, "close");
  channel.end(callOf(argsText));
  const ended = await untilEnd(child, options);
  // What it has said is read until its end.
  await closed;
  return { ...ended, given: callEnd.result?.toString("utf8") };
}

/** The policy by which a process is scheduled: sched(7), proc_pid_stat(5). */
export function policyOf(pid: number | undefined): string | undefined {
  const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return { 0: "SCHED_OTHER", 3: "SCHED_BATCH" }[fields[38] ?? ""];
}

/** What a worker sends with a call. */
export function callOf(argsText: string): string {
  return `call ${Buffer.byteLength(argsText)}\n${argsText}`;
}

async function untilEnd(
  child: ReturnType<typeof start>,
  options: RunOptions,
): Promise<AnsweredEnd> {
  if (options.isStdoutClosed === true) child.stdout.destroy();
  const [stdout, stderr, [exitCode, signal]] = await Promise.all([
    options.isStdoutClosed === true ? "" : text(child.stdout),
    text(child.stderr),
    once(child, "exit") as Promise<[number | null, NodeJS.Signals | null]>,
  ]);
  return { exitCode, signal, stdout, stderr };
}

/**
 * The descriptor of the child whose other end is a stream of ours, and what makes it the child's
 * descriptor 0.
 */
export const channelFd = 3;
const channelToStdin = ["/bin/sh", "-c", `exec "$@" <&${channelFd} ${channelFd}<&-`, "sh"];

const env = { PATH: "/usr/bin:/bin", LANG: "C.UTF-8" };

function start(
  [program = "", ...argv]: readonly string[],
  workDir: string,
  ...more: readonly "pipe"[]
) {
  return spawn(program, argv, {
    cwd: workDir,
    env,
    stdio: ["ignore", "pipe", "pipe", ...more],
  }) as ChildProcessByStdio<null, Readable, Readable>;
}

/**
 * Starts a runner that waits for its call, and returns it with the line that it says, if it says
 * one.
 */
export async function startParked(command: readonly string[], workDir: string) {
  const child = start([...channelToStdin, ...command], workDir, "pipe");
  const channel = child.stdio[channelFd] as unknown as Duplex;
  const said = Promise.race([once(channel, "data"), once(child, "exit").then(() => [""])]);
  const [first] = (await said) as [Buffer | string];
  const line = first.toString();
  channel.pause();
  return { child, channel, line, isReady: line === '{"ready":true}\n' };
}

const workDirs: string[] = [];

/** Removes the work directories of every run so far, and what was held for more of them. */
export async function removeWorkDirs(): Promise<void> {
  forked.end();
  pipes.length = 0;
  await Promise.all(workDirs.splice(0).map((path) => rm(path, { recursive: true })));
}

/** Paths of named pipes that nobody uses yet. */
const pipes: string[] = [];

/** A named pipe. A process makes many at once: starting it costs more than they do. */
function takePipe(): string {
  const taken = pipes.pop();
  if (taken !== undefined) return taken;
  const directory = mkdtempSync(join(tmpdir(), "tool-runner-pipes-"));
  workDirs.push(directory);
  pipes.push(...Array.from({ length: 32 }, (_, index) => join(directory, `${index}`)));
  execFileSync("mkfifo", pipes);
  return takePipe();
}

async function createWorkDir(): Promise<string> {
  const workDir = await realpath(await mkdtemp(join(tmpdir(), "tool-runner-")));
  workDirs.push(workDir);
  await mkdir(join(workDir, "input"));
  await mkdir(join(workDir, "output"));
  await rename(takePipe(), join(workDir, "status.pipe"));
  return workDir;
}

async function stage(workDir: string, artifacts: NonNullable<RunOptions["artifacts"]>) {
  const staged = Object.entries(artifacts).map(([parameter, { filename, content }]) => ({
    parameter,
    filename,
    content,
    path: join(workDir, "input", filename),
  }));
  await Promise.all(staged.map(({ path, content }) => writeFile(path, content)));
  return {
    artifact_paths: Object.fromEntries(staged.map(({ parameter, path }) => [parameter, path])),
    artifact_metadata: Object.fromEntries(
      staged.map(({ parameter, filename, path }) => [
        parameter,
        { filename, mime_type: "text/plain", version: 0, local_path: path },
      ]),
    ),
  };
}

/** Reads a pipe from now on; `finish` returns its lines when nobody writes any more. */
function readStatuses(workDir: string): { finish(): readonly string[] } {
  const descriptor = openSync(
    join(workDir, "status.pipe"),
    constants.O_RDWR | constants.O_NONBLOCK,
  );
  const chunks: Buffer[] = [];
  const socket = new Socket({ fd: descriptor, readable: true, writable: false });
  socket.on("data", (chunk) => chunks.push(chunk));
  return {
    finish: () => {
      for (let chunk = readAvailable(descriptor); chunk !== undefined;) {
        chunks.push(chunk);
        chunk = readAvailable(descriptor);
      }
      socket.destroy();
      return Buffer.concat(chunks).toString("utf8").split("\n").slice(0, -1);
    },
  };
}

function readAvailable(descriptor: number): Buffer | undefined {
  const chunk = Buffer.alloc(64 * 1024);
  try {
    return chunk.subarray(0, readSync(descriptor, chunk));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EAGAIN") return undefined;
    throw error;
  }
}
