/**
 * Runs one installer in a sandbox, and takes what it made.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { type FileHandle, open } from "node:fs/promises";
import { Readable } from "node:stream";
import type { Profile } from "../../sandbox/profile.ts";
import {
  type CapturedOutput,
  type ExitReport,
  type ReadOnlyMount,
  type SandboxBackend,
  workDirInside,
} from "../../sandbox/sandbox.ts";
import { workDirNames } from "../../sandbox/work/work-dir.ts";
import { below, openDirectory } from "../../support/files/below.ts";
import type { Clock } from "../../support/clock.ts";
import { EnvironmentError, InstallerError } from "../environments.ts";
import type { Redaction } from "../registry/redaction.ts";
import { type LentCache, cacheInside } from "./cache.ts";

/** Paths of a build inside its sandbox. */
export const buildPaths = {
  input: `${workDirInside}/${workDirNames.input}`,
  output: `${workDirInside}/${workDirNames.output}`,
  temporary: `${workDirInside}/tmp`,
} as const;

/** Lines of an installer that are kept of a failure, and characters of them. */
const maxLines = 20;
const maxCharacters = 4_000;

/** What builds run with. */
export interface BuildHost {
  readonly backend: Pick<SandboxBackend, "acquire" | "share">;
  readonly profile: Profile;
  readonly clock: Clock;
  readonly timeoutSeconds: number;
}

/** With the end of one build, which may take several steps. */
export interface TimedHost extends BuildHost {
  readonly deadline: AbortSignal;
}

/** What an installer has installed. */
export interface Installed {
  readonly installer: string;
  /** Of all packages that the plan and its lockfile name. */
  readonly names: readonly string[];
  /** Ends the taking of it. */
  readonly signal: AbortSignal;
}

/** A path of the host for a sandbox. */
export interface SharedPath {
  readonly path: string;
  readonly target: string;
}

/** One run of an installer. */
export interface BuildStep {
  readonly title: string;
  readonly argv: readonly string[];
  readonly environment: ReadonlyMap<string, string>;
  /** Paths of the host, to be shared, and where they are inside. */
  readonly shares: readonly SharedPath[];
  /** What is shared already. */
  readonly mounts: readonly ReadOnlyMount[];
  /** Content of files in {@link buildPaths.input}, by name. */
  readonly files: ReadonlyMap<string, string>;
  /** Mounted at {@link cacheInside}. For a step that runs no code of packages only. */
  readonly cache?: LentCache | undefined;
  readonly redaction: Redaction;
}

/** Runs the step before its command: the temporary directory is on the disk and not in memory. */
const withTemporary = ["/bin/sh", "-c", `mkdir ${buildPaths.temporary} && exec "$@"`, "build"];

/**
 * Runs the step, and calls `take` with the open directory `output/` while nothing of the sandbox
 * runs, in the same time limit. Throws EnvironmentError with the installer's last lines, which is
 * InstallerError unless time was up; SandboxError; rejects with the signal's reason.
 */
export async function runStep<Result>(
  host: TimedHost,
  step: BuildStep,
  take: (output: FileHandle, signal: AbortSignal) => Promise<Result>,
  signal: AbortSignal,
): Promise<Result> {
  await using held = new AsyncDisposableStack();
  const mounts: ReadOnlyMount[] = [...step.mounts];
  for (const { path, target } of step.shares) {
    const { source } = held.use(await host.backend.share(path));
    mounts.push({ source, target });
  }
  const { profile, timeoutSeconds } = host;
  const environment = new Map([
    ["PATH", "/usr/local/bin:/usr/bin:/bin"],
    ["LANG", "C.UTF-8"],
    ["HOME", buildPaths.temporary],
    ["TMPDIR", buildPaths.temporary],
    ...step.environment,
  ]);
  const { cache } = step;
  const request = {
    profile,
    memoryBound: "resident" as const,
    mounts,
    writable: cache === undefined ? [] : [{ source: cache.path, target: cacheInside }],
    devices: [],
    environment,
  };
  const sandbox = held.use(await host.backend.acquire(request, signal));
  for (const [name, content] of step.files)
    await sandbox.workDir.writeInput(name, { body: Readable.from([Buffer.from(content)]) }, signal);
  const over = AbortSignal.any([signal, host.deadline]);
  const execution = await sandbox.start({ argv: [...withTemporary, ...step.argv] }, signal);
  const stop = (): void => void execution.stop(0).catch(() => undefined);
  over.addEventListener("abort", stop, { once: true });
  if (over.aborted) stop();
  const ended = new AbortController();
  cache
    ?.watch(profile.limits.diskBytes, (limit) => execution.end(limit), ended.signal)
    .catch(() => undefined);
  const report = await execution.exited;
  ended.abort();
  over.removeEventListener("abort", stop);
  signal.throwIfAborted();
  const output = lastLines(report, step.redaction);
  const late = `${step.title} took more than ${timeoutSeconds} s`;
  if (over.aborted) throw new EnvironmentError(late, { output });
  const problem = problemOf(report);
  if (problem !== undefined) throw new InstallerError(`${step.title} ${problem}`, { output });
  await using directory = await open(sandbox.workDir.path, openDirectory);
  await using made = await open(below(directory, workDirNames.output), openDirectory);
  try {
    return await take(made, over);
  } catch (error) {
    signal.throwIfAborted();
    if (!over.aborted) throw error;
    throw new EnvironmentError(late, { cause: error });
  }
}

/**
 * Copies files, directories and links of a directory of `output/` to a new one, owned by the
 * worker,
 * readable for everybody, with no set-user-ID bit. No link is followed. Resolves with its bytes on
 * the disk. Throws EnvironmentError; rejects with the signal's reason.
 */
export async function copyOut(
  output: FileHandle,
  name: string,
  target: string,
  signal: AbortSignal,
): Promise<number> {
  await using source = await open(below(output, name), openDirectory);
  await runProgram(
    "/usr/bin/cp",
    [
      "-R",
      "-P",
      "--preserve=timestamps,links",
      "--reflink=auto",
      "--",
      "/proc/self/fd/3/.",
      target,
    ],
    signal,
    source.fd,
  );
  const others = ["!", "-type", "f", "!", "-type", "d", "!", "-type", "l"];
  await runProgram("/usr/bin/find", [target, ...others, "-delete"], signal);
  await runProgram("/usr/bin/chmod", ["-R", "u=rwX,go=rX", "--", target], signal);
  // What is published is whole, also after the machine loses its power.
  await runProgram("/usr/bin/sync", ["--file-system", target], signal);
  const size = await runProgram("/usr/bin/du", ["-s", "-B1", "--", target], signal);
  return Number.parseInt(size);
}

async function runProgram(
  file: string,
  options: readonly string[],
  signal: AbortSignal,
  fd?: number,
): Promise<string> {
  signal.throwIfAborted();
  const child = spawn(file, options, {
    cwd: "/",
    env: {},
    stdio: ["ignore", "pipe", "pipe", ...(fd === undefined ? [] : [fd])],
  });
  let [printed, problem] = ["", ""];
  child.stdout?.on("data", (data: Buffer) => (printed += data.toString()));
  child.stderr?.on("data", (data: Buffer) => (problem ||= data.toString()));
  const kill = (): void => void child.kill("SIGKILL");
  signal.addEventListener("abort", kill, { once: true });
  const [code] = (await once(child, "close").finally(() =>
    signal.removeEventListener("abort", kill),
  )) as [number | null];
  signal.throwIfAborted();
  if (code === 0) return printed;
  throw new EnvironmentError(`${file} failed`, { cause: new Error(problem.trim()) });
}

function problemOf({ started, exceeded, exitCode, signal }: ExitReport): string | undefined {
  if (!started) return "could not be started in a sandbox";
  if (exceeded !== undefined) return `reached its limit of ${exceeded.limit}`;
  if (exitCode === 0) return undefined;
  return exitCode === undefined ? `was ended by ${signal ?? "a signal"}` : `ended with ${exitCode}`;
}

/** The end of both streams, without secrets and control characters. */
export function lastLines(
  { stdout, stderr }: Pick<ExitReport, "stdout" | "stderr">,
  redaction: Redaction,
): string {
  const lines = `${wholeLines(stdout)}\n${wholeLines(stderr)}`
    .split(/[\r\n]+/)
    .map((line) => line.replaceAll(/\x1b\[[0-9;]*[A-Za-z]|\p{Cc}/gu, "").trimEnd())
    .filter((line) => line !== "");
  return redaction.apply(lines.slice(-maxLines).join("\n")).slice(-maxCharacters);
}

/** Without a first line whose beginning is lost: it may begin within a secret. */
function wholeLines({ text, droppedBytes }: CapturedOutput): string {
  if (droppedBytes === 0) return text;
  const end = text.search(/[\r\n]/);
  return end < 0 ? "" : text.slice(end);
}
