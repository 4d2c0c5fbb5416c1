/**
 * Control groups of this host: finds out what the worker may do with them, and makes them.
 */
import type { Limits } from "../../protocol/resource-limits.ts";
import { SandboxError } from "../sandbox.ts";
import type { Cgroups, CgroupsFound, CgroupsOptions, SandboxCgroup } from "./cgroup.ts";
import { CgroupFiles } from "./files.ts";
import { type CgroupMakings, CgroupOfSandbox } from "./group.ts";
import { joinRemark, timeJoin } from "./join.ts";
import { cgroupNames, isLeftBehind } from "./names.ts";
import { CgroupRefusal, cgroupRemedies } from "./refusal.ts";
import { tryGroups } from "./trial.ts";
import { CgroupStock } from "./stock.ts";
import { type CgroupVersion, findV1, findV2 } from "./versions.ts";

/**
 * Milliseconds after which a group is kept or removed: while its processes give back their memory,
 * it is busy, and each attempt to remove it costs more than all other work for it.
 */
const discardAfterMs = 20;

/** A version that was tried. Without makings it cannot be used. */
interface OpenedVersion {
  readonly refusals: readonly CgroupRefusal[];
  readonly makings?: CgroupMakings;
  readonly joinMs?: number;
  readonly own?: Disposable;
}

/** Options of {@link openCgroups} that backends pass on. */
export interface HostCgroupsOptions extends CgroupsOptions {
  /** The trial whose result decides; {@link tryGroups} unless given. */
  readonly tryGroups?: typeof tryGroups | undefined;
}

/**
 * Finds out by trying what this worker may do with control groups, prefers version 2, and removes
 * groups of dead workers. In version 2 the worker and its children move to a group below their own
 * until the result is disposed. Rejects with the signal's reason only.
 */
export async function openCgroups(
  options: HostCgroupsOptions,
  signal: AbortSignal = AbortSignal.any([]),
): Promise<CgroupsFound> {
  const { timesJoin = false } = options;
  const newName = cgroupNames(options.newId);
  const v2 = await open(findV2, options, newName, signal);
  const v1 = v2.makings === undefined ? await open(findV1, options, newName, signal) : undefined;
  const { makings, joinMs = 0, own } = v1?.makings === undefined ? v2 : v1;
  const refusals = toReport(v2.refusals, v1?.refusals);
  const found = {
    reason: refusals.length === 0 ? undefined : refusals.map(({ message }) => message).join("; "),
    remedy: refusals[0] && cgroupRemedies[refusals[0].code],
    remark: timesJoin ? joinRemark(joinMs) : undefined,
  };
  if (makings === undefined || own === undefined) return { ...found, cgroups: undefined };
  await removeLeftBehind(makings);
  return { ...found, cgroups: new HostCgroups(makings, newName, joinMs, own) };
}

async function open(
  find: (files: CgroupFiles) => CgroupVersion,
  options: HostCgroupsOptions,
  newName: () => string,
  signal: AbortSignal,
): Promise<OpenedVersion> {
  const { clock, files = new CgroupFiles(), timesJoin = false } = options;
  const { tryGroups: run = tryGroups } = options;
  const onRemoveFailed = (error: unknown): void => options.onRemoveFailed(error);
  using undo = new DisposableStack();
  try {
    const { dialect, parents, refusals, own } = find(files);
    undo.use(own);
    if (parents.length === 0) return { refusals };
    const candidates = { files, dialect, parents, clock, onRemoveFailed };
    const tried = await run(candidates, newName());
    signal.throwIfAborted();
    const all = [...refusals, ...tried.refusals];
    if (tried.parents.length === 0) return { refusals: all };
    const makings = { ...candidates, parents: tried.parents };
    const joinAgain = async (): Promise<number> => (await tryGroups(makings, newName())).joinMs;
    const joinMs = timesJoin ? await timeJoin(joinAgain, clock, signal) : tried.joinMs;
    return { makings, refusals: all, joinMs, own: undo.move() };
  } catch (error) {
    if (!(error instanceof CgroupRefusal)) throw error;
    return { refusals: [error] };
  }
}

/** Each controller is bound to one version (cgroups(7)): where version 1 has some, it decides. */
function toReport(
  v2: readonly CgroupRefusal[],
  v1: readonly CgroupRefusal[] | undefined,
): readonly CgroupRefusal[] {
  if (v1 === undefined) return v2;
  return v1.every(({ code }) => code === "not-mounted") && v1.length > 0 ? v2 : v1;
}

async function removeLeftBehind(makings: CgroupMakings): Promise<void> {
  const { files, parents } = makings;
  const names = new Set(parents.flatMap(({ directory }) => files.groupsIn(directory)));
  const groups = [...names].filter(isLeftBehind).map((name) => new CgroupOfSandbox(makings, name));
  await Promise.all(groups.map((group) => group[Symbol.asyncDispose]()));
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
  readonly #stock = new CgroupStock();

  constructor(makings: CgroupMakings, newName: () => string, joinMs: number, own: Disposable) {
    this.#makings = makings;
    this.#newName = newName;
    this.joinMs = joinMs;
    this.#own = own;
    this.version = makings.dialect.version;
    const controls = makings.parents.flatMap((parent) => parent.controls);
    this.controls = {
      memory: controls.includes("memory"),
      processes: controls.includes("processes"),
      cpu: controls.includes("cpu"),
    };
    this.description = `cgroup v${this.version} (${controls.join(", ")})`;
  }

  async create(limits: Limits, signal?: AbortSignal): Promise<SandboxCgroup> {
    signal?.throwIfAborted();
    try {
      const kept = this.#stock.take(limits);
      return kept ?? CgroupOfSandbox.make(this.#makings, this.#newName(), limits);
    } catch (error) {
      throw new SandboxError("cannot make a control group for a sandbox", { cause: error });
    }
  }

  discard(group: CgroupOfSandbox): void {
    const discarding = this.#discard(group).finally(() => this.#discarding.delete(discarding));
    this.#discarding.add(discarding);
  }

  async #discard(group: CgroupOfSandbox): Promise<void> {
    await this.#makings.clock.sleep(discardAfterMs);
    await this.#stock.keep(group);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#discarding);
    await this.#stock[Symbol.asyncDispose]();
    try {
      this.#own[Symbol.dispose]();
    } catch (error) {
      this.#makings.onRemoveFailed(error);
    }
  }
}
