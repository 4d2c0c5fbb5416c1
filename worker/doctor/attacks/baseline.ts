/**
 * Baselines: each attack also runs in a sandbox that protects only the host, and has to reach its
 * target there.
 */
import { join } from "node:path";
import { systemClock } from "../../support/clock.ts";
import { settlesWithin } from "../../support/timeout.ts";
import {
  type LimitReached,
  type Limits,
  limitFacts,
  limitNames,
} from "../../protocol/resource-limits.ts";
import type { PreparedTool } from "../../runners/runner.ts";
import { ownerTagOptions } from "../../sandbox/orphans.ts";
import { ResourceMonitor } from "../../sandbox/accounting/resource-monitor.ts";
import { SandboxUsage } from "../../sandbox/accounting/sandbox-usage.ts";
import { type Subprocess, killWithChildren, startSubprocess } from "../../sandbox/subprocess.ts";
import type { Attack } from "./attack.ts";
import type { Canaries } from "./canaries.ts";
import { parseProgramAnswer, withPythonNames } from "../program.ts";

/** Time limit of a baseline for each call, in milliseconds; the arena ends attacks earlier. */
const baselineTimeoutMs = 70_000;
/** Time limit in milliseconds for reading the rest of the output. */
const outputGraceMs = 250;
/** Multiple of each limit for a baseline. Attacks take at most twice a limit. */
const headroom = 4;

/** Host, interpreter and limits of a baseline. */
export interface BaselineParts {
  readonly bwrapBin: string;
  /** Owner tag of the worker, so that its guard also ends baselines of a killed doctor. */
  readonly ownerTag: string;
  /** Host uid of the sandboxes, or undefined for the worker's own. */
  readonly uid: number | undefined;
  /** Interpreter and environment of tools. */
  readonly python: Pick<PreparedTool, "mounts" | "environment" | "launch">;
  /** A directory that the uid can read, with `tools/` and `baseline/`. */
  readonly arenaDirectory: string;
  readonly limits: Limits;
  /** Whether this host allows a new /proc. */
  readonly hasProc: boolean;
  /** Whether this host allows sandboxes a host name. */
  readonly hasHostName: boolean;
}

/** The result of a baseline. */
export interface BaselineRun {
  readonly reached: boolean;
  readonly evidence: string;
  readonly durationMs: number;
}

/**
 * Runs an attack without protection. An abort ends it. Rejects with the system's error when the
 * sandbox does not start, and with the reason of a signal that is aborted before.
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
    // A careless parent passes its environment on.
    env: { [canaries.variable]: canaries.token, ...Object.fromEntries(parts.python.environment) },
    uid: parts.uid,
    inputs: [JSON.stringify(orderFor(attack, canaries, parts.limits))],
  });
  // Kills the children, too: the first process dies with bubblewrap only from its prctl(2) on.
  const kill = (): void => killWithChildren(child);
  signal.addEventListener("abort", kill, { once: true });
  try {
    const timeoutMs = (attack.rounds ?? 1) * baselineTimeoutMs;
    const exceeded = await endedWithin(
      child,
      timeoutMs,
      canaries.target.openDirectory,
      parts.limits,
    );
    // A process that the attack left may hold the output open.
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

/** The arena's order. */
function orderFor(
  { id, rounds = 1, baseline }: Attack,
  { token, variable, target }: Pick<Canaries, "token" | "variable" | "target">,
  limits: Limits,
): object {
  const { metadataAddress, metadataName, listedName, unlistedName, rebindingName } = target;
  const { maxConnections, maxConnectionsInAll } = target;
  const given = withPythonNames({
    ...{ metadataAddress, metadataName, listedName, unlistedName, rebindingName },
    ...{ maxConnections, maxConnectionsInAll },
  });
  return { id, token, variable, ...given, limits: withPythonNames(limits), rounds, baseline };
}

/**
 * Waits for the end, and kills a baseline that exceeds its time or a limit; returns that limit.
 *
 * @param directory an empty one: a baseline's own file systems are in memory
 */
async function endedWithin(
  child: Subprocess,
  timeoutMs: number,
  directory: string,
  limits: Limits,
): Promise<LimitReached | undefined> {
  let exceeded: LimitReached | undefined;
  using usage = await SandboxUsage.open(new ResourceMonitor(), undefined, {
    commandIsChild: true,
    limits: withHeadroom(limits),
    workDir: directory,
    tmpfs: undefined,
    hasDevices: false,
  });
  usage.begin(child.pid, {
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
 * Own namespaces and sized scratch file systems protect the host. Inside there is no protection:
 * all capabilities, no system-call filter, one user, secrets in command line and environment.
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
    // No kernel lets a user namespace open a disk; this one is a disk by name only.
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
