/**
 * Cold bubblewrap sandboxes: a new one for each call.
 */
import { join } from "node:path";
import type { Clock } from "../../support/clock.ts";
import type { NewId } from "../../support/ids.ts";
import { limitPrefix } from "../rlimits.ts";
import {
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
}

/** A backend that also says what it found on this host. */
export interface BubblewrapBackend extends SandboxBackend {
  readonly host: HostFacts;
  /** Directory for this process alone, which sandboxes can reach; removed with the backend. */
  readonly scratchDir: string;
}

/**
 * Prepares the work directories and probes the host. The caller owns the backend.
 * Throws SandboxError when no sandbox can be made here.
 */
export async function openBubblewrap(options: BubblewrapOptions): Promise<BubblewrapBackend> {
  const workDirs = await WorkDirs.open({
    base: options.workBase,
    ownerId: options.uid,
    newId: options.newId,
    onRemoveFailed: options.onRemoveFailed,
  });
  try {
    const host = await probeHost(options, workDirs);
    return new Backend(options, workDirs, host);
  } catch (error) {
    await workDirs[Symbol.asyncDispose]();
    throw error;
  }
}

class Backend implements BubblewrapBackend {
  readonly kind = "bubblewrap";
  readonly host: HostFacts;
  readonly #options: BubblewrapOptions;
  readonly #workDirs: WorkDirs;
  readonly #shared: SharedDirectories;
  /** Counts sandboxes, so that those bound to fewer CPUs than there are spread over them. */
  #turn = 0;

  constructor(options: BubblewrapOptions, workDirs: WorkDirs, host: HostFacts) {
    this.#options = options;
    this.#workDirs = workDirs;
    this.#shared = new SharedDirectories(
      join(workDirs.root, "shared"),
      options.uid,
      options.newId,
      options.clock,
    );
    this.host = host;
  }

  get scratchDir(): string {
    return this.#workDirs.root;
  }

  async acquire(request: SandboxRequest, signal: AbortSignal): Promise<Sandbox> {
    signal.throwIfAborted();
    const workDir = await this.#workDirs.take();
    return new ColdSandbox(this.#options, this.host, request, workDir, this.#turn++);
  }

  share(directory: string): Promise<SharedDirectory> {
    return this.#shared.share(directory);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#shared[Symbol.asyncDispose]();
    await this.#workDirs[Symbol.asyncDispose]();
  }
}

class ColdSandbox implements Sandbox {
  readonly workDir: WorkDir;
  readonly unenforced: readonly Unenforced[];
  readonly #options: BubblewrapOptions;
  readonly #host: HostFacts;
  readonly #request: SandboxRequest;
  readonly #turn: number;
  #execution: Execution | undefined;

  constructor(
    options: BubblewrapOptions,
    host: HostFacts,
    request: SandboxRequest,
    workDir: WorkDir,
    turn: number,
  ) {
    this.workDir = workDir;
    this.unenforced = host.unenforced;
    this.#options = options;
    this.#host = host;
    this.#request = request;
    this.#turn = turn;
  }

  async start(launch: Launch): Promise<Execution> {
    if (this.#execution !== undefined) throw new SandboxError("a sandbox is started once");
    const { profile, mounts, environment } = this.#request;
    const { proc, systemDirectories, hardLimits, cpuIds, seccomp } = this.#host;
    this.#execution = await startBwrap(
      {
        bwrapBin: this.#options.bwrapBin,
        uid: this.#options.uid,
        seccomp,
        argv: [...limitPrefix(profile.limits, hardLimits, cpuIds, this.#turn), ...launch.argv],
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
