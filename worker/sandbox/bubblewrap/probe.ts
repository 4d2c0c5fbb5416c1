/**
 * Finds out by trying what bubblewrap can do on this host.
 */
import { lstat, readFile, readlink } from "node:fs/promises";
import { canWatchMemory } from "../memory-guard.ts";
import { builtInProfiles } from "../profile.ts";
import { type HardLimits, limitPrefix, parseCpuList, parseHardLimits } from "../rlimits.ts";
import { SandboxError, type Unenforced } from "../sandbox.ts";
import { startSubprocess } from "../subprocess.ts";
import type { WorkDirs } from "../work-dirs.ts";
import type { Clock } from "../../support/clock.ts";
import { type ProcVariant, type SystemDirectory, bwrapOptions } from "./argv.ts";
import { isFilteredArch, seccompProgram } from "./seccomp.ts";
import { startBwrap } from "./process.ts";

/** What the host allows, measured once at start. */
export interface HostFacts {
  /** `fresh` where a new /proc can be mounted; `empty` where the container masks its own (`/proc` stays empty inside). */
  readonly proc: ProcVariant;
  readonly systemDirectories: readonly SystemDirectory[];
  readonly hardLimits: HardLimits;
  readonly cpuIds: readonly number[];
  /** The system-call filter; undefined where there is none for this architecture. */
  readonly seccomp: Uint8Array | undefined;
  /** First line of `bwrap --version`. */
  readonly version: string;
  /** What this host does not allow, for the operator and for every call. */
  readonly unenforced: readonly Unenforced[];
}

const candidates = ["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];

/**
 * Runs a real sandbox of every built-in profile, with a new /proc or, where that is refused, an empty one. Throws SandboxError with bubblewrap's own words when neither works.
 */
export async function probeHost(
  options: { readonly bwrapBin: string; readonly uid: number | undefined; readonly clock: Clock },
  workDirs: Pick<WorkDirs, "take" | "sandboxMark">,
): Promise<HostFacts> {
  const facts = {
    version: await version(options.bwrapBin),
    systemDirectories: await systemDirectories(),
    hardLimits: parseHardLimits(await readFile("/proc/self/limits", "utf8")),
    cpuIds: await allowedCpus(),
    seccomp: isFilteredArch(process.arch) ? seccompProgram(process.arch) : undefined,
  };
  const watchesMemory = await canWatchMemory();
  await using workDir = await workDirs.take();
  const refusals: string[] = [];
  for (const proc of ["fresh", "empty"] as const) {
    const trial = {
      ...options,
      mark: workDirs.sandboxMark,
      workDir: workDir.path,
      facts: { ...facts, unenforced: gaps(proc, facts.seccomp, watchesMemory), proc },
    };
    const refusal = await tryProfiles(trial);
    if (refusal === undefined) return trial.facts;
    refusals.push(refusal);
  }
  throw new SandboxError(
    `${options.bwrapBin} cannot make a sandbox here: ${refusals.join("; with an empty /proc: ")}`,
    { setting: "bwrapBin" },
  );
}

function gaps(
  proc: ProcVariant,
  seccomp: HostFacts["seccomp"],
  watchesMemory: boolean,
): readonly Unenforced[] {
  const unenforced: Unenforced[] = [];
  if (proc !== "fresh") unenforced.push("fresh-proc");
  if (seccomp === undefined) unenforced.push("seccomp");
  if (!watchesMemory) unenforced.push("resident-memory");
  return unenforced;
}

interface Trial {
  readonly bwrapBin: string;
  readonly mark: string;
  readonly uid: number | undefined;
  readonly workDir: string;
  readonly facts: HostFacts;
  readonly clock: Clock;
}

/** Runs /usr/bin/true under each profile; the first refusal, in bubblewrap's words, or undefined. */
async function tryProfiles(trial: Trial): Promise<string | undefined> {
  const { proc, systemDirectories, hardLimits, cpuIds, seccomp } = trial.facts;
  for (const profile of builtInProfiles.values()) {
    const execution = await startBwrap(
      {
        bwrapBin: trial.bwrapBin,
        mark: trial.mark,
        uid: trial.uid,
        seccomp,
        memory: undefined,
        argv: [
          ...limitPrefix(profile.limits, "address-space", hardLimits, cpuIds, 0),
          "/usr/bin/true",
        ],
        options: bwrapOptions({
          profile,
          proc,
          systemDirectories,
          workDir: trial.workDir,
          mounts: [],
          environment: new Map(),
        }),
      },
      trial.clock,
    );
    const report = await execution.exited;
    if (report.exitCode !== 0) return `profile ${profile.name}: ${report.stderr.text.trim()}`;
  }
  return undefined;
}

async function version(bwrapBin: string): Promise<string> {
  try {
    const child = await startSubprocess({ file: bwrapBin, argv: ["--version"], env: {} });
    await child.closed;
    return child.output().stdout.text.split("\n")[0] ?? "";
  } catch (error) {
    throw new SandboxError(`cannot start ${bwrapBin}`, { cause: error, setting: "bwrapBin" });
  }
}

async function systemDirectories(): Promise<readonly SystemDirectory[]> {
  const found = await Promise.all(
    candidates.map(async (path) => {
      const stats = await lstat(path).catch(() => undefined);
      if (stats === undefined) return [];
      return [{ path, linkTarget: stats.isSymbolicLink() ? await readlink(path) : undefined }];
    }),
  );
  return found.flat();
}

async function allowedCpus(): Promise<readonly number[]> {
  const status = await readFile("/proc/self/status", "utf8");
  return parseCpuList(/^Cpus_allowed_list:\s*(.*)$/m.exec(status)?.[1] ?? "0");
}
