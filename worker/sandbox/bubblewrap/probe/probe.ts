/**
 * Probes bubblewrap on this host by trials, and takes the strongest variant that works.
 */
import { readFile, stat } from "node:fs/promises";
import type { LimitName } from "../../../protocol/resource-limits.ts";
import { missingProgram } from "../../../support/install-hint.ts";
import { settlesWithin } from "../../../support/timeout.ts";
import type { CgroupsFound } from "../../cgroup/cgroup.ts";
import type { HostCheck } from "../../host-check.ts";
import { type HardLimits, parseHardLimits } from "../../rlimits.ts";
import { SandboxError, type Unenforced } from "../../sandbox.ts";
import { startSubprocess } from "../../subprocess.ts";
import type { WorkDirs } from "../../work/work-dirs.ts";
import type { ProcVariant } from "../argv.ts";
import { type SystemDirectory, allowedCpus, systemDirectories } from "../../proc/host.ts";
import { readHostSettings } from "./host-settings.ts";
import { unkeptLimits } from "../enforcement.ts";
import { requireSafeProgram } from "../first-program.ts";
import { type TrialObservation, filtersIn, readStatus } from "./probe-script.ts";
import { type Refusals, judge } from "./probes.ts";
import { otherUserRemedy } from "./remedies.ts";
import { signalQuietly } from "../../proc/processes.ts";
import { isFilteredArch, seccompProgram } from "../seccomp/seccomp.ts";
import type { Refusal, TrialHost } from "./trial.ts";
import { type Shown, type TrialBase, Trials, type Variant } from "./trials.ts";

/** Features of the host, probed once at start. */
export interface HostFacts {
  /**
   * `fresh` where a new /proc can be mounted; `empty` where the container masks its own (`/proc`
   * stays empty inside).
   */
  readonly proc: ProcVariant;
  /** Whether bubblewrap limits user namespaces inside to zero. */
  readonly limitsNested: boolean;
  /** Whether sandboxes have their own host name. */
  readonly namesHost: boolean;
  readonly systemDirectories: readonly SystemDirectory[];
  readonly hardLimits: HardLimits;
  readonly cpuIds: readonly number[];
  /** The system-call filter; undefined where architecture or kernel have none. */
  readonly seccomp: Uint8Array | undefined;
  /** First line of `bwrap --version`. */
  readonly version: string;
  /** Whether the worker sees the usage of a sandbox's tmpfs. */
  readonly seesInside: boolean;
  /** Limits that the kernel does not enforce here. */
  readonly unkept: readonly LimitName[];
  /** Protections that this host denies, for the operator and for every call. */
  readonly unenforced: readonly Unenforced[];
}

/** The result of the probe. */
export interface HostReport {
  /** First line of `bwrap --version`. */
  readonly version: string;
  /** All checks, in the order of reports. */
  readonly checks: readonly HostCheck[];
  /** Features for sandboxes; undefined where none can be made. */
  readonly facts: HostFacts | undefined;
}

/** The result of the trials; without a variant the host allows no sandbox. */
export interface Tried extends Shown {
  readonly variant: Variant | undefined;
  readonly refusals: Refusals;
}

/** See {@link tryHost}. */
export type TryHost = (host: TrialHost, base: TrialBase) => Promise<Tried | Refusal>;

/** Options of {@link probeHost}. */
export interface ProbeOptions extends Omit<TrialHost, "ownerTag"> {
  /** {@link tryHost} unless given. */
  readonly tryHost?: TryHost | undefined;
  /** See {@link identify}. */
  readonly version: string;
  /** Undefined when the worker does not use them. */
  readonly cgroups: CgroupsFound | undefined;
}

/** Time limit of `bwrap --version` in milliseconds, on a host that is busy starting. */
const versionTimeoutMs = 20_000;
/**
 * Runs sandboxes of each built-in profile, and takes the strongest variant that this host allows.
 * Rejects with SandboxError when bubblewrap does not start, a tool could change it, or its refusal
 * is unexplained, and with the signal's reason. Other profiles combine the features of these.
 */
export async function probeHost(
  options: ProbeOptions,
  workDirs: Pick<WorkDirs, "take" | "ownerTag">,
): Promise<HostReport> {
  const base = {
    systemDirectories: await systemDirectories(),
    hardLimits: parseHardLimits(await readFile("/proc/self/limits", "utf8")),
  };
  await using workDir = await workDirs.take();
  const { tryHost: run = tryHost } = options;
  const tried = await run(
    { ...options, ownerTag: workDirs.ownerTag },
    { ...base, workDir: workDir.path },
  );
  if ("refusal" in tried)
    throw new SandboxError(`${options.bwrapBin} cannot make a sandbox here: ${tried.refusal}`, {
      setting: "bwrapBin",
    });
  const { variant, observations } = tried;
  for (const program of new Set(observations.map(({ program }) => program ?? options.bwrapBin)))
    await requireSafeProgram(program, options.uid);
  const checks = judge({
    ...tried,
    workerFilters: filtersIn(await readStatus("self")),
    workerNetwork: await networkOfWorker(),
    arch: process.arch,
    isFilteredArch: isFilteredArch(process.arch),
    cgroups: options.cgroups,
    settings: await readHostSettings(),
  });
  const facts = variant && {
    version: options.version,
    cpuIds: await allowedCpus(),
    ...base,
    ...variant,
    seesInside: observations.every(({ seesFiles }) => seesFiles),
    unkept: unkeptLimits(observations),
    unenforced: unenforced(checks, observations, variant),
  };
  return { version: options.version, checks, facts };
}

/**
 * Runs the trials of a host: its strongest variant, or a refusal that is unexplained. Rejects with
 * the signal's reason.
 */
export async function tryHost(host: TrialHost, base: TrialBase): Promise<Tried | Refusal> {
  const trials = new Trials(host, base);
  const seccomp = isFilteredArch(process.arch) ? seccompProgram(process.arch) : undefined;
  const best = {
    proc: "fresh",
    limitsNested: true,
    hasNetworkNamespace: true,
    namesHost: true,
    seccomp,
  } as const;
  const shown = await trials.show(best);
  if (!("refusal" in shown)) return { variant: best, refusals: {}, ...shown };
  const refusals = await trials.refusals(seccomp);
  if (refusals.userNamespaces !== undefined)
    return { variant: undefined, refusals, observations: [], nestedWithoutFilter: undefined };
  const variant: Variant = {
    proc: refusals.freshProc === undefined ? "fresh" : "empty",
    limitsNested: refusals.nestedLimit === undefined,
    hasNetworkNamespace: refusals.network === undefined,
    namesHost: refusals.hostName === undefined,
    seccomp: refusals.seccomp === undefined ? seccomp : undefined,
  };
  const second = await trials.show(variant);
  return "refusal" in second ? second : { variant, refusals, ...second };
}

/** Failed protections, for the report of every call. */
function unenforced(
  checks: readonly HostCheck[],
  observations: readonly TrialObservation[],
  { namesHost }: Variant,
): readonly Unenforced[] {
  const lacks = (name: HostCheck["name"]): boolean =>
    checks.some((check) => check.name === name && check.state !== "held");
  const gaps: Unenforced[] = [];
  if (lacks("fresh-proc")) gaps.push("fresh-proc");
  if (lacks("seccomp")) gaps.push("seccomp");
  if (observations.some(({ seesProcesses }) => !seesProcesses)) gaps.push("resident-memory");
  if (!namesHost) gaps.push("host-name");
  return gaps;
}

/** The number of the worker's network namespace; see namespaces(7). */
async function networkOfWorker(): Promise<number | undefined> {
  return stat("/proc/self/ns/net").then(
    ({ ino }) => ino,
    () => undefined,
  );
}

/**
 * The version line of bubblewrap, run as the sandboxes' user. Rejects with SandboxError when that
 * user cannot run it or it is another program, and with the signal's reason.
 */
export async function identify(
  { bwrapBin, uid, clock }: Pick<TrialHost, "bwrapBin" | "uid" | "clock">,
  signal: AbortSignal,
): Promise<string> {
  signal.throwIfAborted();
  try {
    const child = await startSubprocess({ file: bwrapBin, argv: ["--version"], env: {}, uid });
    const isClosed = await settlesWithin(child.closed, versionTimeoutMs, clock, signal);
    // Kills a script with its programs.
    if (!isClosed) signalQuietly(-child.pid, "SIGKILL");
    child.close();
    signal.throwIfAborted();
    if (!isClosed) throw new Error(`it says nothing of its version in ${versionTimeoutMs} ms`);
    const [line = ""] = child.output().stdout.text.split("\n");
    if (!line.startsWith("bubblewrap ")) throw new Error(`it says "${line}" of its version`);
    return line;
  } catch (error) {
    signal.throwIfAborted();
    if (uid !== undefined && (error as NodeJS.ErrnoException).code === "EPERM")
      throw new SandboxError(
        `this root may not run programs as user ${uid}; ${otherUserRemedy(await readHostSettings())}`,
        { cause: error },
      );
    throw new SandboxError(`cannot use ${bwrapBin} as bubblewrap`, {
      cause: (await missingProgram(bwrapBin, "bubblewrap")) ?? error,
      setting: "bwrapBin",
    });
  }
}
