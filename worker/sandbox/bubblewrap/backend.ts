/**
 * Cold bubblewrap sandboxes: a new one for each call.
 */
import { join } from "node:path";
import type { CgroupsFound } from "../cgroup/cgroup.ts";
import { openCgroups } from "../cgroup/host-cgroups.ts";
import { ResourceMonitor } from "../accounting/resource-monitor.ts";
import {
  type CheckName,
  type HostCheck,
  defaultMinimum,
  describeUnmet,
  unmetChecks,
} from "../host-check.ts";
import type { NewId } from "../../support/ids.ts";
import { Door } from "../network/door.ts";
import { guardOrphans } from "../orphans.ts";
import type { Profile } from "../profile.ts";
import { clampedLimits } from "../rlimits.ts";
import {
  type AheadOfCalls,
  type BackendOptions,
  type Sandbox,
  type SandboxBackend,
  SandboxError,
  type SandboxFacts,
  type SandboxRequest,
  type SharedDirectory,
  type Unenforced,
} from "../sandbox.ts";
import { SharedDirectories } from "../shared-directories.ts";
import { scratchBases, sweepScratch } from "../work/scratch-dirs.ts";
import { type TakeOptions, WorkDirs } from "../work/work-dirs.ts";
import { bubblewrapAhead } from "./idle/ahead.ts";
import { ColdSandbox, type ColdSandboxFacts, type ColdSandboxParts } from "./cold-sandbox.ts";
import { enforcementOf } from "./enforcement.ts";
import { type HostFacts, type HostReport, identify, probeHost } from "./probe/probe.ts";
import { leaveOutOfCoreDumps } from "./sandbox-processes.ts";
import type { BubblewrapSettings } from "./settings.ts";

/** Options of the bubblewrap backend. */
export interface BubblewrapOptions extends BackendOptions, BubblewrapSettings {
  /** Leaves control groups alone, so that the resource monitor does their work. */
  readonly withoutCgroups?: boolean;
  /** Work in the scratch directory that needs no sandbox: it is done while the host is probed. */
  readonly alongside?: ((scratchDir: string) => Promise<unknown>) | undefined;
}

/** A backend that also says what it found on this host. */
export interface BubblewrapBackend extends SandboxBackend {
  readonly host: HostFacts;
  /** What was tried on this host, and what came of it. */
  readonly checks: readonly HostCheck[];
  /** What came of asking for control groups; undefined when nobody asked. */
  readonly cgroups: CgroupsFound | undefined;
}

/**
 * Prepares the work directories and probes the host. The caller owns the backend. Throws
 * SandboxError when no sandbox can be made here, and when this host does not hold what is asked of
 * it. Rejects with the signal's reason.
 */
export async function openBubblewrap(
  options: BubblewrapOptions,
  signal: AbortSignal = AbortSignal.any([]),
): Promise<BubblewrapBackend> {
  await using opened = new AsyncDisposableStack();
  leaveOutOfCoreDumps();
  const prepared = await prepare(options, opened, false, signal);
  const host = requireMinimum(prepared.report, options.minimum ?? defaultMinimum);
  return createBackend(options, prepared, host, opened);
}

/** Takes what `opened` has, and opens the rest. */
function createBackend(
  options: BubblewrapOptions,
  { report, workDirs, found }: Prepared,
  host: HostFacts,
  opened: AsyncDisposableStack,
): BubblewrapBackend {
  const { root } = workDirs;
  const { uid, newId, clock, bwrapBin } = options;
  const shared = opened.use(new SharedDirectories(join(root, "shared"), uid, newId, clock));
  const { ownerTag } = workDirs;
  const monitor = new ResourceMonitor();
  const { pythonBin = "/usr/bin/python3" } = options;
  const door = opened.use(new Door({ pythonBin, uid }));
  const parts = { bwrapBin, uid, clock, host, ownerTag, monitor, cgroups: found?.cgroups, door };
  const { checks } = report;
  return new Backend(parts, checks, found, workDirs, shared, newId, opened.move());
}

/** A check of what needs a whole backend; without one where no sandbox can be made. */
export type FurtherCheck = (
  backend: SandboxBackend | undefined,
  earlier: readonly HostCheck[],
) => Promise<HostCheck>;

/**
 * Finds out what this host allows, and leaves nothing behind. Throws SandboxError when nobody can
 * say; rejects with the signal's reason.
 */
export async function examineHost(
  options: BubblewrapOptions,
  further: FurtherCheck,
  signal: AbortSignal,
): Promise<HostReport> {
  await using opened = new AsyncDisposableStack();
  const prepared = await prepare(options, opened, true, signal);
  const { report } = prepared;
  const { checks, facts } = report;
  await using backend =
    facts === undefined ? undefined : createBackend(options, prepared, facts, opened);
  return { ...report, checks: [...checks, await further(backend, checks)] };
}

/** What has to be there before there is a sandbox. */
interface Prepared {
  readonly report: HostReport;
  readonly workDirs: WorkDirs;
  readonly found: CgroupsFound | undefined;
}

/** Gives all of it to `opened`. */
async function prepare(
  options: BubblewrapOptions,
  opened: AsyncDisposableStack,
  timesJoin: boolean,
  signal: AbortSignal,
): Promise<Prepared> {
  const { uid, clock, newId, onRemoveFailed, identify: ask = identify } = options;
  const version = await ask(options, signal);
  const base = options.workBase;
  await sweepScratch([...Object.values(scratchBases), base], uid, onRemoveFailed);
  const workDirs = opened.use(
    await WorkDirs.open({ base, ownerId: uid, newId, clock, onRemoveFailed }),
  );
  const beside = options.alongside?.(workDirs.root).catch(() => undefined);
  // Whoever began it hears of its failure; nothing may write there when the directory is removed.
  opened.defer(async () => void (await beside));
  opened.use(await guardOrphans(workDirs.ownerTag, clock, options.onGuardLost));
  const found =
    options.withoutCgroups === true
      ? undefined
      : await openCgroups({ ...options, timesJoin }, signal);
  if (found?.cgroups !== undefined) opened.use(found.cgroups);
  const report = await probeHost({ ...options, version, cgroups: found, signal }, workDirs);
  return { report, workDirs, found };
}

/**
 * What sandboxes are made with. Throws SandboxError, with the remedy for each, where a check of the
 * minimum is not held.
 */
function requireMinimum({ checks, facts }: HostReport, minimum: readonly CheckName[]): HostFacts {
  const unmet = unmetChecks(checks, minimum);
  if (facts !== undefined && unmet.length === 0) return facts;
  throw new SandboxError(describeUnmet(unmet), { setting: "minimum" });
}

function factsOf({ host, cgroups }: ColdSandboxParts): ColdSandboxFacts {
  const enforcement = enforcementOf({
    group: cgroups?.controls ?? { memory: false, processes: false, cpu: false },
    seesProcesses: !host.unenforced.includes("resident-memory"),
    isFiltered: !host.unenforced.includes("seccomp"),
    unkept: host.unkept,
  });
  const isGap = (gap: Unenforced): boolean =>
    gap !== "resident-memory" || enforcement.memoryBytes === "none";
  return {
    enforcement,
    unenforced: [
      ...host.unenforced.filter(isGap),
      ...(host.seesInside ? [] : (["held-files"] as const)),
    ],
  };
}

class Backend implements BubblewrapBackend {
  readonly checks: readonly HostCheck[];
  readonly cgroups: CgroupsFound | undefined;
  readonly #parts: ColdSandboxParts;
  readonly #facts: ColdSandboxFacts;
  readonly #workDirs: WorkDirs;
  readonly #shared: SharedDirectories;
  readonly #newId: NewId;
  /** All that has to be given back in the end. */
  readonly #opened: AsyncDisposable;
  /** Counts sandboxes, so that those bound to fewer CPUs than there are spread over them. */
  #turn = 0;

  constructor(
    parts: ColdSandboxParts,
    checks: readonly HostCheck[],
    cgroups: CgroupsFound | undefined,
    workDirs: WorkDirs,
    shared: SharedDirectories,
    newId: NewId,
    opened: AsyncDisposable,
  ) {
    this.checks = checks;
    this.cgroups = cgroups;
    this.#parts = parts;
    this.#facts = factsOf(parts);
    this.#workDirs = workDirs;
    this.#shared = shared;
    this.#newId = newId;
    this.#opened = opened;
  }

  get host(): HostFacts {
    return this.#parts.host;
  }

  facts({ limits }: Profile): SandboxFacts {
    const { host, cgroups } = this.#parts;
    return {
      technology: [host.version, cgroups?.description].filter(Boolean).join(", "),
      ...this.#facts,
      checks: this.checks,
      clamped: clampedLimits(limits, host.hardLimits),
    };
  }

  get scratchDir(): string {
    return this.#workDirs.root;
  }

  async acquire(request: SandboxRequest, signal: AbortSignal): Promise<Sandbox> {
    signal.throwIfAborted();
    return this.#make(request, { bindsShared: true });
  }

  aheadOf(): AheadOfCalls {
    return bubblewrapAhead({
      sandboxes: this.#parts,
      facts: this.#facts,
      workDirs: this.#workDirs,
      newId: this.#newId,
      make: (request) => this.#make(request),
      nextTurn: () => this.#turn++,
    });
  }

  async #make(request: SandboxRequest, options?: TakeOptions): Promise<ColdSandbox> {
    const workDir = await this.#workDirs.take(options);
    return new ColdSandbox(this.#parts, this.#facts, request, workDir, this.#turn++);
  }

  share(directory: string): Promise<SharedDirectory> {
    return this.#shared.share(directory);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#opened[Symbol.asyncDispose]();
  }
}
