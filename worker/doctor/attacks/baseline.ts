/**
 * Baselines: the same attack in a sandbox that protects the host from it and nothing else, where it
 * has to reach.
 */
import { join } from "node:path";
import { systemClock } from "../../support/clock.ts";
import { settlesWithin } from "../../support/within.ts";
import {
  type LimitReached,
  type Limits,
  limitFacts,
  limitNames,
} from "../../protocol/resource-limits.ts";
import type { PreparedTool } from "../../runners/runner.ts";
import { ownerTagOptions } from "../../sandbox/orphans.ts";
import { DiskWalk } from "../../sandbox/totals/disk-use.ts";
import { Guard } from "../../sandbox/totals/guard.ts";
import { type Subprocess, killWithChildren, startSubprocess } from "../../sandbox/subprocess.ts";
import type { Attack } from "./attack.ts";
import type { Canaries } from "./canaries.ts";
import { parseProgramAnswer, withPythonNames } from "../program.ts";

/**
 * Milliseconds a baseline may take for each call of its attack; the arena itself ends attacks
 * earlier.
 */
const baselineTimeoutMs = 70_000;
/** Milliseconds that reading the rest of the output may take. */
const outputGraceMs = 250;
/**
 * How much of each limit a baseline has. Attacks take at most twice as much, and who looks at them
 * as much again.
 */
const headroom = 4;

/** What baselines are made with. */
export interface BaselineParts {
  readonly bwrapBin: string;
  /**
   * What the guard of the worker's sandboxes knows them by, so that it ends baselines as well when
   * the doctor is killed.
   */
  readonly ownerTag: string;
  /** Host uid of the sandboxes, or undefined for the worker's own. */
  readonly uid: number | undefined;
  /** Interpreter and environment, as tools have them. */
  readonly python: Pick<PreparedTool, "mounts" | "environment" | "launch">;
  /** A directory that the uid can read, with `tools/` and `baseline/`. */
  readonly arenaDirectory: string;
  readonly limits: Limits;
  /** Whether a new /proc can be mounted on this host. */
  readonly hasProc: boolean;
  /** Whether sandboxes can be given a name of the host on this host. */
  readonly hasHostName: boolean;
}

/** What came of a baseline. */
export interface BaselineRun {
  readonly reached: boolean;
  readonly evidence: string;
  readonly durationMs: number;
}

/**
 * Runs an attack where nothing holds it. Never throws for what the attack does; rejects with the
 * system's error when the sandbox program cannot be started, and with the signal's reason when that
 * has aborted before. A later abort ends it.
 */
export async function runBaseline(
  attack: Attack,
  canaries: Pick<Canaries, "token" | "variable" | "target">,
  parts: BaselineParts,
  signal: AbortSignal,
): Promise<BaselineRun> {
  signal.throwIfAborted();
  const startMs = systemClock.monotonicMs();
  const child = await startSubprocess({
    file: parts.bwrapBin,
    argv: [
      ...ownerTagOptions(parts.ownerTag),
      ...arenaOptions(parts, canaries.token),
      "--",
      ...arenaCommand(parts),
    ],
    // What a sandbox that is started carelessly hands on.
    env: { [canaries.variable]: canaries.token, ...Object.fromEntries(parts.python.environment) },
    uid: parts.uid,
    inputs: [JSON.stringify(orderFor(attack, canaries, parts.limits))],
  });
  // The first process inside does not die with bubblewrap before it has asked for that.
  const kill = (): void => killWithChildren(child);
  signal.addEventListener("abort", kill, { once: true });
  try {
    const timeoutMs = (attack.rounds ?? 1) * baselineTimeoutMs;
    const exceeded = await endedWithin(child, timeoutMs, canaries.target.openDirectory, parts.limits);
    // What an attack left may have the output for a moment more.
    await settlesWithin(child.closed, outputGraceMs, systemClock);
    const { stdout, stderr } = child.output();
    const durationMs = Math.round(systemClock.monotonicMs() - startMs);
    if (exceeded === undefined) return { ...readAnswer(stdout.text, stderr.text), durationMs };
    const evidence = `the baseline took too much: ${limitFacts[exceeded.limit].word}`;
    return { reached: false, evidence, durationMs };
  } finally {
    signal.removeEventListener("abort", kill);
    child.close();
  }
}

/** What the arena reads. */
function orderFor(
  { id, rounds = 1, baseline }: Attack,
  { token, variable, target }: Pick<Canaries, "token" | "variable" | "target">,
  limits: Limits,
): object {
  const metadata = { metadata_address: target.metadataAddress };
  return { id, token, variable, ...metadata, limits: withPythonNames(limits), rounds, baseline };
}

/**
 * Waits for the end, which comes by SIGKILL when it takes too long, or takes too much: then that
 * limit is returned.
 *
 * @param directory one without files: what a baseline has of its own is in memory
 */
async function endedWithin(
  child: Subprocess,
  timeoutMs: number,
  directory: string,
  limits: Limits,
): Promise<LimitReached | undefined> {
  let exceeded: LimitReached | undefined;
  using disk = new DiskWalk(directory);
  using _watched = new Guard().watch({
    firstPid: child.pid,
    commandIsChild: true,
    limits: withHeadroom(limits),
    disk,
    privateMemory: undefined,
    group: undefined,
    onExceeded: (limit) => {
      exceeded = limit;
      killWithChildren(child);
    },
    onFailed: () => killWithChildren(child),
  });
  if (!(await settlesWithin(child.exited, timeoutMs, systemClock))) killWithChildren(child);
  await child.exited;
  return exceeded;
}

function readAnswer(stdout: string, stderr: string): Pick<BaselineRun, "reached" | "evidence"> {
  const answer = parseProgramAnswer(lastLine(stdout));
  if (answer !== undefined) return answer;
  const reason = lastLine(stderr) || "no reason given";
  return { reached: false, evidence: `the baseline did not answer: ${reason}` };
}

function withHeadroom(limits: Limits): Limits {
  return Object.fromEntries(limitNames.map((name) => [name, headroom * limits[name]])) as Limits;
}

function lastLine(text: string): string {
  return text.trimEnd().split("\n").at(-1) ?? "";
}

/**
 * Namespaces of its own and sized scratch file systems keep the host out of reach. Within them
 * nothing is protected: all capabilities, no system-call filter, one user for everybody, secrets on
 * the command line and in the environment.
 */
function arenaOptions(parts: BaselineParts, token: string): readonly string[] {
  const { limits } = parts;
  const scratch = (path: string, sizeBytes: number): readonly string[] => [
    ...["--size", String(headroom * sizeBytes), "--tmpfs", path],
  ];
  return [
    "--unshare-all",
    "--unshare-user",
    ...["--uid", "0", "--gid", "0", "--cap-add", "ALL"],
    "--new-session",
    "--die-with-parent",
    ...(parts.hasHostName ? ["--hostname", `baseline-${token}`] : []),
    ...["/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/alternatives"].flatMap(
      (path) => ["--ro-bind-try", path, path],
    ),
    ...(parts.hasProc ? ["--proc", "/proc"] : ["--tmpfs", "/proc"]),
    ...["--dev", "/dev", ...scratch("/dev/shm", limits.tmpBytes)],
    // No kernel lets a user namespace open a disk; this is one by its name alone.
    ...["--dev-bind", "/dev/null", "/dev/sda"],
    ...scratch("/tmp", limits.tmpBytes),
    ...scratch("/scratch", limits.diskBytes),
    ...parts.python.mounts.flatMap(({ source, target }) => ["--ro-bind", source, target]),
    ...["--ro-bind", parts.arenaDirectory, "/arena"],
  ];
}

function arenaCommand({ python }: BaselineParts): readonly string[] {
  const [interpreter = ""] = python.launch.argv;
  return [interpreter, "-I", "-B", join("/arena", "baseline", "arena.py")];
}
