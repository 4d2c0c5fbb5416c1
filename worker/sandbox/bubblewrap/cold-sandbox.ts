/**
 * One sandbox of bubblewrap's, made for one call: from its work directory to its end.
 */
import type { Limits } from "../../protocol/resource-limits.ts";
import type { Clock } from "../../support/clock.ts";
import type { Cgroups } from "../cgroup/cgroup.ts";
import type { Guard } from "../totals/guard.ts";
import type { PrivateMemory } from "../totals/private-memory.ts";
import type { Profile } from "../profile.ts";
import { clampLimits, limitPrefix, placement } from "../rlimits.ts";
import {
  type Enforcement,
  type Launch,
  type Sandbox,
  SandboxError,
  type SandboxRequest,
  type Unenforced,
  insidePaths,
} from "../sandbox.ts";
import { Totals } from "../totals/totals.ts";
import type { WorkDir } from "../work/work-dir.ts";
import { bwrapOptions } from "./argv.ts";
import type { HostFacts } from "./probe.ts";
import { type BwrapExecution, startBwrap } from "./process.ts";

/** What all sandboxes of a worker have in common. */
export interface ColdSandboxParts {
  readonly bwrapBin: string;
  readonly uid: number | undefined;
  readonly clock: Clock;
  readonly host: HostFacts;
  /** What tells this worker's sandboxes from others'. */
  readonly mark: string;
  readonly guard: Guard;
  readonly cgroups: Cgroups | undefined;
}

/** What is said of the sandbox. */
export interface ColdSandboxFacts {
  readonly enforcement: Enforcement;
  readonly unenforced: readonly Unenforced[];
}

/** A sandbox that owns its work directory. */
export class ColdSandbox implements Sandbox {
  readonly backend = "bubblewrap";
  readonly enforcement: Enforcement;
  readonly unenforced: readonly Unenforced[];
  readonly workDir: WorkDir;
  readonly limits: Limits;
  readonly #parts: ColdSandboxParts;
  readonly #request: SandboxRequest;
  readonly #turn: number;
  #isStarted = false;
  #execution: BwrapExecution | undefined;

  /** @param turn spreads sandboxes over the CPUs */
  constructor(
    parts: ColdSandboxParts,
    facts: ColdSandboxFacts,
    request: SandboxRequest,
    workDir: WorkDir,
    turn: number,
  ) {
    this.enforcement = facts.enforcement;
    this.unenforced = facts.unenforced;
    this.workDir = workDir;
    this.limits = clampLimits(request.profile.limits, parts.host.hardLimits);
    this.#parts = parts;
    this.#request = request;
    this.#turn = turn;
  }

  /** Everything is mounted where it is called. */
  locate(insidePath: string): string {
    return insidePath;
  }

  async start(launch: Launch): Promise<BwrapExecution> {
    if (this.#isStarted) throw new SandboxError("a sandbox is started once");
    this.#isStarted = true;
    const { bwrapBin, uid, clock, host, mark } = this.#parts;
    const { profile, memoryBound, mounts, devices, environment } = this.#request;
    const { limits } = this;
    const { proc, limitsNested, namesHost, systemDirectories, hardLimits, cpuIds, seccomp } = host;
    const workDir = this.workDir.path;
    this.#execution = await startBwrap(
      {
        bwrapBin,
        mark,
        uid,
        seccomp,
        openTotals: () => this.#openTotals(),
        placement: placement(limits, cpuIds, this.#turn),
        argv: [...limitPrefix(limits, memoryBound, hardLimits), ...launch.argv],
        options: bwrapOptions({
          profile,
          proc,
          limitsNested,
          namesHost,
          systemDirectories,
          workDir,
          mounts,
          devices,
          environment,
        }),
      },
      clock,
    );
    return this.#execution;
  }

  async #openTotals(): Promise<Totals> {
    const { guard, cgroups } = this.#parts;
    const { profile } = this.#request;
    return Totals.open(guard, cgroups, {
      limits: this.limits,
      workDir: this.workDir.path,
      privateMemory: privateMemoryOf(profile, this.workDir.path),
      commandIsChild: true,
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#execution?.stop(0);
    await this.workDir[Symbol.asyncDispose]();
  }
}

/** Where a sandbox has memory file systems. */
function privateMemoryOf({ hasVar }: Profile, workDir: string): PrivateMemory {
  return {
    directories: ["/tmp", "/dev/shm", ...(hasVar ? ["/var"] : [])],
    workDirInside: insidePaths.work,
    workDir,
  };
}
