/**
 * Cold bubblewrap sandboxes: a new one for each call.
 */
import { join } from "node:path";
import type { Clock } from "../../support/clock.ts";
import type { NewId } from "../../support/ids.ts";
import { type MemoryGuard, PollingMemoryGuard } from "../memory-guard.ts";
import { guardOrphans } from "../orphans.ts";
import { limitPrefix } from "../rlimits.ts";
import {
  type Enforcement,
  type Execution,
  type Launch,
  type Sandbox,
  type SandboxBackend,
  type SandboxRequest,
  SandboxError,
  type SharedDirectory,
  type Unenforced,
} from "../sandbox.ts";
import { SharedDirectories } from "../shared-directories.ts";
import type { WorkDir } from "../work-dir.ts";
import { WorkDirs } from "../work-dirs.ts";
import { bwrapOptions } from "./argv.ts";
import { type HostFacts, probeHost } from "./probe.ts";
import { startBwrap } from "./process.ts";

/** Options of the bubblewrap backend. */
export interface BubblewrapOptions {
  readonly bwrapBin: string;
  /** Directory for work directories (`SANDBOX_WORK_DIR`). */
  readonly workBase: string;
  /** Host uid and gid that sandboxes run as, or undefined for the worker's own. */
  readonly uid: number | undefined;
  readonly clock: Clock;
  readonly newId: NewId;
  onRemoveFailed(error: unknown): void;
  /** Told each time that the process which ends the sandboxes of a dead worker has ended or cannot be started again. */
  onGuardLost(error: unknown): void;
}

/** A backend that also says what it found on this host. */
export interface BubblewrapBackend extends SandboxBackend {
  readonly host: HostFacts;
}

/**
 * Prepares the work directories and probes the host. The caller owns the backend.
 * Throws SandboxError when no sandbox can be made here.
 */
export async function openBubblewrap(options: BubblewrapOptions): Promise<BubblewrapBackend> {
  await using opened = new AsyncDisposableStack();
  const workDirs = opened.use(
    await WorkDirs.open({
      base: options.workBase,
      ownerId: options.uid,
      newId: options.newId,
      onRemoveFailed: options.onRemoveFailed,
    }),
  );
  opened.use(await guardOrphans(workDirs.sandboxMark, options.clock, options.onGuardLost));
  const host = await probeHost(options, workDirs);
  return new Backend(options, workDirs, host, opened.move());
}

class Backend implements BubblewrapBackend {
  readonly host: HostFacts;
  readonly #options: BubblewrapOptions;
  readonly #workDirs: WorkDirs;
  /** The work directories, and what has to be given back with them. */
  readonly #opened: AsyncDisposable;
  readonly #shared: SharedDirectories;
  readonly #guard = new PollingMemoryGuard();
  /** Counts sandboxes, so that those bound to fewer CPUs than there are spread over them. */
  #turn = 0;

  constructor(
    options: BubblewrapOptions,
    workDirs: WorkDirs,
    host: HostFacts,
    opened: AsyncDisposable,
  ) {
    this.#options = options;
    this.#workDirs = workDirs;
    this.#opened = opened;
    this.#shared = new SharedDirectories(
      join(workDirs.root, "shared"),
      options.uid,
      options.newId,
      options.clock,
    );
    this.host = host;
  }

  get description(): string {
    return this.host.version;
  }

  get unenforced(): readonly Unenforced[] {
    return this.host.unenforced;
  }

  get scratchDir(): string {
    return this.#workDirs.root;
  }

  async acquire(request: SandboxRequest, signal: AbortSignal): Promise<Sandbox> {
    signal.throwIfAborted();
    const workDir = await this.#workDirs.take();
    return new ColdSandbox(
      this.#options,
      this.host,
      this.#workDirs.sandboxMark,
      request,
      workDir,
      this.#guard,
      this.#turn++,
    );
  }

  share(directory: string): Promise<SharedDirectory> {
    return this.#shared.share(directory);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#shared[Symbol.asyncDispose]();
    await this.#opened[Symbol.asyncDispose]();
  }
}

const enforcement: Enforcement = {
  memoryBytes: "guard",
  cpuSeconds: "none",
  cpus: "none",
  processes: "kernel",
  openFiles: "kernel",
  fileSizeBytes: "kernel",
  tmpBytes: "kernel",
  diskBytes: "none",
  files: "none",
  statusBytes: "none",
};

class ColdSandbox implements Sandbox {
  readonly backend = "bubblewrap";
  readonly enforcement: Enforcement;
  readonly workDir: WorkDir;
  readonly unenforced: readonly Unenforced[];
  readonly #options: BubblewrapOptions;
  readonly #host: HostFacts;
  readonly #mark: string;
  readonly #request: SandboxRequest;
  readonly #guard: MemoryGuard;
  readonly #turn: number;
  #execution: Execution | undefined;

  constructor(
    options: BubblewrapOptions,
    host: HostFacts,
    mark: string,
    request: SandboxRequest,
    workDir: WorkDir,
    guard: MemoryGuard,
    turn: number,
  ) {
    this.workDir = workDir;
    this.unenforced = host.unenforced.filter(
      (gap) => gap !== "resident-memory" || request.memoryBound === "resident",
    );
    this.enforcement = enforcement;
    this.#options = options;
    this.#host = host;
    this.#mark = mark;
    this.#request = request;
    this.#guard = guard;
    this.#turn = turn;
  }

  async start(launch: Launch): Promise<Execution> {
    if (this.#execution !== undefined) throw new SandboxError("a sandbox is started once");
    const { profile, memoryBound, mounts, environment } = this.#request;
    const { limits } = profile;
    const { proc, systemDirectories, hardLimits, cpuIds, seccomp } = this.#host;
    this.#execution = await startBwrap(
      {
        bwrapBin: this.#options.bwrapBin,
        mark: this.#mark,
        uid: this.#options.uid,
        seccomp,
        memory:
          memoryBound === "resident"
            ? { guard: this.#guard, limitBytes: limits.memoryBytes }
            : undefined,
        argv: [...limitPrefix(limits, memoryBound, hardLimits, cpuIds, this.#turn), ...launch.argv],
        options: bwrapOptions({
          profile,
          proc,
          systemDirectories,
          workDir: this.workDir.path,
          mounts,
          environment,
        }),
      },
      this.#options.clock,
    );
    return this.#execution;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#execution?.stop(0);
    await this.workDir[Symbol.asyncDispose]();
  }
}
