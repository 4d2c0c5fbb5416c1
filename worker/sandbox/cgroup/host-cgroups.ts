/**
 * Control groups of this host: finds out what the worker may do with them, and makes them.
 */
import type { Limits } from "../../protocol/resource-limits.ts";
import type { Cgroups, CgroupsFound, CgroupsOptions, SandboxCgroup } from "./cgroup.ts";
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
