/**
 * The contract of control groups: the kernel keeps a sandbox's totals where this worker may make
 * groups of its own.
 */
import type { Limits } from "../../protocol/resource-limits.ts";
import type { Clock } from "../../support/clock.ts";
import type { NewId } from "../../support/ids.ts";
import { CgroupFiles } from "./files.ts";
import { type CgroupMakings, CgroupOfSandbox } from "./group.ts";
import { joinRemark } from "./join.ts";
import { cgroupNames, isLeftBehind } from "./names.ts";
import { openV1, openV2 } from "./open.ts";
import { type CgroupRefusal, cgroupRemedies } from "./refusal.ts";
import { SandboxError } from "../sandbox.ts";

/**
 * Milliseconds after which a group is removed: as long as the processes that were in it give back
 * their memory, it is busy, and each attempt costs more than all other work for it.
 */
const discardAfterMs = 20;

/** What a control group can keep or count of a sandbox. */
export type CgroupControl = "memory" | "processes" | "cpu";

/**
 * What control groups can do for sandboxes on this host. Its owner disposes it after the last
 * sandbox is gone; then no group is left, and the worker is again where it was.
 */
export interface Cgroups extends AsyncDisposable {
  /** One line for the operator: the version, and what is kept. */
  readonly description: string;
  readonly version: 1 | 2;
  /** `memory` and `processes` are bounded, `cpu` time is counted. */
  readonly controls: Readonly<Record<CgroupControl, boolean>>;
  /** Milliseconds that {@link SandboxCgroup.add} takes when it is rare, as it was tried. */
  readonly joinMs: number;
  /**
   * Makes a group for one sandbox, with its limits set. The caller owns it. Throws SandboxError.
   */
  create(limits: Limits, signal?: AbortSignal): Promise<SandboxCgroup>;
  /**
   * Disposes a group in the background: the kernel takes longer for it than an answer should wait.
   */
  discard(group: SandboxCgroup): void;
}

/**
 * The group of one sandbox. To be disposed when the sandbox's last process is gone; what is left in
 * it then is killed, and a group that cannot be removed is told of elsewhere, so that disposing
 * never rejects.
 */
export interface SandboxCgroup extends AsyncDisposable {
  /**
   * Moves a process that has no children yet, and makes none meanwhile, into the group. Rejects
   * with SandboxError when the kernel refuses; the process may then be in a part of it, and is to
   * be killed. One that is gone already is nothing to move.
   */
  add(pid: number): Promise<void>;
  /** What was used so far. Synchronous, and to be called before the group is disposed. */
  read(): CgroupUsage;
  /**
   * Kills every process in the group. One that is being born meanwhile may escape, until the group
   * is disposed.
   */
  kill(): void;
}

/** What a group used so far. A member is undefined where the kernel does not tell. */
export interface CgroupUsage {
  /** Processor time of all processes, those that are gone included. */
  readonly cpuMs: number | undefined;
  /**
   * The most that was charged at once: also files in private memory, and cached files, which the
   * kernel gives up in need.
   */
  readonly peakMemoryBytes: number | undefined;
  /** The most processes and threads at once, without bubblewrap's own. */
  readonly peakProcesses: number | undefined;
  /** Processes that were killed because the memory was used up. */
  readonly memoryKills: number;
}

/** Options of {@link openCgroups}. */
export interface CgroupsOptions {
  readonly clock: Pick<Clock, "monotonicMs" | "sleep">;
  readonly newId: NewId;
  /**
   * Told of a group that could not be removed; nothing else fails because of it. It must not throw.
   */
  onRemoveFailed(error: unknown): void;
  /** The host's, unless told otherwise. */
  readonly files?: CgroupFiles;
  /**
   * Whether to find out, in some 0.2 s, what joining a group costs each call: without it there is
   * no remark.
   */
  readonly timesJoin?: boolean;
}

/** What {@link openCgroups} found. */
export interface CgroupsFound {
  /** Undefined when this worker may do nothing with control groups. The caller owns it. */
  readonly cgroups: Cgroups | undefined;
  /**
   * What is missing and why, for the operator; undefined when everything is there. It names
   * directories of the host.
   */
  readonly reason: string | undefined;
  /** How the operator can give what is missing. */
  readonly remedy: string | undefined;
  /**
   * For the operator: what groups cost more than they could, and what to do about it; undefined
   * when it is nothing.
   */
  readonly remark: string | undefined;
}

/**
 * Finds out by trying what this worker may do with control groups, prefers version 2, and removes
 * groups that dead workers left there. The worker's own group is where sandboxes' groups are made;
 * in version 2 the worker moves to a group below it, with its children, until the result is
 * disposed. Rejects with the signal's reason only.
 */
export async function openCgroups(
  options: CgroupsOptions,
  signal: AbortSignal = AbortSignal.any([]),
): Promise<CgroupsFound> {
  const { clock, newId, onRemoveFailed, files = new CgroupFiles(), timesJoin = false } = options;
  const surroundings = { files, clock, onRemoveFailed: onRemoveFailed.bind(options), timesJoin };
  const newName = cgroupNames(newId);
  const v2 = await openV2(surroundings, newName, signal);
  const v1 = v2.makings === undefined ? await openV1(surroundings, newName, signal) : undefined;
  const { makings, joinMs, own } = v1?.makings === undefined ? v2 : v1;
  const told = toldRefusals(v2.refusals, v1?.refusals);
  const found = {
    reason: told.length === 0 ? undefined : told.map(({ message }) => message).join("; "),
    remedy: told[0] && cgroupRemedies[told[0].code],
    remark: timesJoin ? joinRemark(joinMs) : undefined,
  };
  if (makings === undefined) return { ...found, cgroups: undefined };
  await removeLeftBehind(makings);
  return { ...found, cgroups: new HostCgroups(makings, newName, joinMs, own) };
}

/**
 * A controller is bound to one version (cgroups(7)): where version 1 has any, what is said of
 * version 2 is no news.
 */
function toldRefusals(
  v2: readonly CgroupRefusal[],
  v1: readonly CgroupRefusal[] | undefined,
): readonly CgroupRefusal[] {
  if (v1 === undefined) return v2;
  return v1.every(({ code }) => code === "not-mounted") && v1.length > 0 ? v2 : v1;
}

async function removeLeftBehind(makings: CgroupMakings): Promise<void> {
  const { files, parents } = makings;
  const names = new Set(parents.flatMap(({ directory }) => files.groupsIn(directory)));
  await Promise.all(
    [...names].filter(isLeftBehind).map(async (name) => {
      await using _group = CgroupOfSandbox.adopt(makings, name);
    }),
  );
}

class HostCgroups implements Cgroups {
  readonly version: 1 | 2;
  readonly controls: Cgroups["controls"];
  readonly description: string;
  readonly joinMs: number;
  readonly #makings: CgroupMakings;
  readonly #newName: () => string;
  readonly #own: Disposable;
  readonly #discarding = new Set<Promise<void>>();

  constructor(makings: CgroupMakings, newName: () => string, joinMs: number, own: Disposable) {
    this.#makings = makings;
    this.#newName = newName;
    this.joinMs = joinMs;
    this.#own = own;
    this.version = makings.dialect.version;
    const kept = makings.parents.flatMap(({ controls }) => controls);
    this.controls = {
      memory: kept.includes("memory"),
      processes: kept.includes("processes"),
      cpu: kept.includes("cpu"),
    };
    this.description = `cgroup v${this.version} (${kept.join(", ")})`;
  }

  async create(limits: Limits, signal?: AbortSignal): Promise<SandboxCgroup> {
    signal?.throwIfAborted();
    try {
      return CgroupOfSandbox.make(this.#makings, this.#newName(), limits);
    } catch (error) {
      throw new SandboxError("cannot make a control group for a sandbox", { cause: error });
    }
  }

  discard(group: SandboxCgroup): void {
    const discarding = this.#discard(group).finally(() => this.#discarding.delete(discarding));
    this.#discarding.add(discarding);
  }

  async #discard(group: SandboxCgroup): Promise<void> {
    await this.#makings.clock.sleep(discardAfterMs);
    await using _group = group;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#discarding);
    try {
      this.#own[Symbol.dispose]();
    } catch (error) {
      this.#makings.onRemoveFailed(error);
    }
  }
}
