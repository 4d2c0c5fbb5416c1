/**
 * Controls: the same attack in a sandbox that protects the host from it and nothing else, where it
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
import { markOptions } from "../../sandbox/orphans.ts";
import { DiskWalk } from "../../sandbox/totals/disk-use.ts";
import { Guard } from "../../sandbox/totals/guard.ts";
import { type Subprocess, killWithChildren, startSubprocess } from "../../sandbox/subprocess.ts";
import type { Attack } from "./attack.ts";
import type { Plants } from "./canaries.ts";
import { parseProgramAnswer, withPythonNames } from "../program.ts";

/**
 * Milliseconds a control may take for each call of its attack; the stage itself ends attacks
 * earlier.
 */
const controlTimeoutMs = 70_000;
/** Milliseconds that reading the rest of the output may take. */
const outputGraceMs = 250;
/**
 * How much of each limit a control has. Attacks take at most twice as much, and who looks at them
 * as much again.
 */
const room = 4;

/** What controls are made with. */
export interface ControlParts {
  readonly bwrapBin: string;
  /**
   * What the guard of the worker's sandboxes knows them by, so that it ends controls as well when
   * the doctor is killed.
   */
  readonly mark: string;
  /** Host uid of the sandboxes, or undefined for the worker's own. */
  readonly uid: number | undefined;
  /** Interpreter and environment, as tools have them. */
  readonly python: Pick<PreparedTool, "mounts" | "environment" | "launch">;
  /** A directory that the uid can read, with `tools/` and `baseline/`. */
  readonly stageDirectory: string;
  readonly limits: Limits;
  /** Whether a new /proc can be mounted on this host. */
  readonly hasProc: boolean;
  /** Whether sandboxes can be given a name of the host on this host. */
  readonly hasHostName: boolean;
}

/** What came of a control. */
export interface ControlRun {
  readonly reached: boolean;
  readonly evidence: string;
  readonly durationMs: number;
}

/**
 * Runs an attack where nothing holds it. Never throws for what the attack does; rejects with the
 * system's error when the sandbox program cannot be started, and with the signal's reason when that
 * has aborted before. A later abort ends it.
 */
export async function runControl(
  attack: Attack,
  plants: Pick<Plants, "token" | "variable" | "target">,
  parts: ControlParts,
  signal: AbortSignal,
): Promise<ControlRun> {
  signal.throwIfAborted();
  const startMs = systemClock.monotonicMs();
  const child = await startSubprocess({
    file: parts.bwrapBin,
    argv: [
      ...markOptions(parts.mark),
      ...stageOptions(parts, plants.token),
      "--",
      ...stageCommand(parts),
    ],
    // What a sandbox that is started carelessly hands on.
    env: { [plants.variable]: plants.token, ...Object.fromEntries(parts.python.environment) },
    uid: parts.uid,
    inputs: [JSON.stringify(orderFor(attack, plants, parts.limits))],
  });
  // The first process inside does not die with bubblewrap before it has asked for that.
  const kill = (): void => killWithChildren(child);
  signal.addEventListener("abort", kill, { once: true });
  try {
    const timeoutMs = (attack.rounds ?? 1) * controlTimeoutMs;
    const exceeded = await endedWithin(child, timeoutMs, plants.target.openDirectory, parts.limits);
    // What an attack left may have the output for a moment more.
    await settlesWithin(child.closed, outputGraceMs, systemClock);
    const { stdout, stderr } = child.output();
    const durationMs = Math.round(systemClock.monotonicMs() - startMs);
    if (exceeded === undefined) return { ...readAnswer(stdout.text, stderr.text), durationMs };
    const evidence = `the control took too much: ${limitFacts[exceeded.limit].word}`;
    return { reached: false, evidence, durationMs };
  } finally {
    signal.removeEventListener("abort", kill);
    child.close();
  }
}

/** What the stage reads. */
function orderFor(
  { id, rounds = 1, control }: Attack,
  { token, variable, target }: Pick<Plants, "token" | "variable" | "target">,
  limits: Limits,
): object {
  const metadata = { metadata_address: target.metadataAddress };
  return { id, token, variable, ...metadata, limits: withPythonNames(limits), rounds, control };
}

/**
 * Waits for the end, which comes by SIGKILL when it takes too long, or takes too much: then that
 * limit is returned.
 *
 * @param directory one without files: what a control has of its own is in memory
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
    limits: timesRoom(limits),
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

function readAnswer(stdout: string, stderr: string): Pick<ControlRun, "reached" | "evidence"> {
  const said = parseProgramAnswer(lastLine(stdout));
  if (said !== undefined) return said;
  const reason = lastLine(stderr) || "no reason given";
  return { reached: false, evidence: `the control did not answer: ${reason}` };
}

function timesRoom(limits: Limits): Limits {
  return Object.fromEntries(limitNames.map((name) => [name, room * limits[name]])) as Limits;
}

function lastLine(text: string): string {
  return text.trimEnd().split("\n").at(-1) ?? "";
}

/**
 * Namespaces of its own and sized scratch file systems keep the host out of reach. Within them
 * nothing is protected: all capabilities, no system-call filter, one user for everybody, secrets on
 * the command line and in the environment.
 */
function stageOptions(parts: ControlParts, token: string): readonly string[] {
  const { limits } = parts;
  const scratch = (path: string, sizeBytes: number): readonly string[] => [
    ...["--size", String(room * sizeBytes), "--tmpfs", path],
  ];
  return [
    "--unshare-all",
    "--unshare-user",
    ...["--uid", "0", "--gid", "0", "--cap-add", "ALL"],
    "--new-session",
    "--die-with-parent",
    ...(parts.hasHostName ? ["--hostname", `control-${token}`] : []),
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
    ...["--ro-bind", parts.stageDirectory, "/stage"],
  ];
}

function stageCommand({ python }: ControlParts): readonly string[] {
  const [interpreter = ""] = python.launch.argv;
  return [interpreter, "-I", "-B", join("/stage", "baseline", "arena.py")];
}
