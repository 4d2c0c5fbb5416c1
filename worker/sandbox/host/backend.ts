/**
 * No sandbox at all, for development: a command of the host, with what the contract of a sandbox
 * has besides isolation.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Limits } from "../../protocol/resource-limits.ts";
import { guardOrphans } from "../orphans.ts";
import { type Profile, restrictiveProfile } from "../profile.ts";
import {
  type HardLimits,
  clampLimits,
  clampedLimits,
  limitPrefix,
  parseHardLimits,
} from "../rlimits.ts";
import {
  type BackendOptions,
  type Enforcement,
  type Execution,
  type Launch,
  type Sandbox,
  type SandboxBackend,
  SandboxError,
  type SandboxFacts,
  type SandboxRequest,
  type SharedDirectory,
  type Unenforced,
} from "../sandbox.ts";
import { SharedDirectories } from "../shared-directories.ts";
import type { WorkDir } from "../work/work-dir.ts";
import { WorkDirs } from "../work/work-dirs.ts";
import { HostPaths } from "./paths.ts";
import { startOnHost } from "./process.ts";

/** Marks are at least this: as microseconds of a real-time thread, 35 years. */
const firstMark = 2 ** 50;
/** Hexadecimal digits of a name of our own that a mark is made of. */
const markDigits = 12;

/**
 * The kernel keeps limits of a process, and the worker reads the statuses; nothing keeps sums, or
 * files apart.
 */
const enforcement: Enforcement = {
  memoryBytes: "none",
  cpuSeconds: "none",
  cpus: "none",
  processes: "none",
  openFiles: "kernel",
  fileSizeBytes: "kernel",
  tmpBytes: "none",
  diskBytes: "none",
  files: "none",
  statusBytes: "guard",
};

const unenforced: readonly Unenforced[] = ["isolation", "seccomp"];

/**
 * Prepares the work directories and runs a command. The caller owns the backend. Throws
 * SandboxError.
 */
export async function openHost(options: BackendOptions): Promise<SandboxBackend> {
  await using opened = new AsyncDisposableStack();
  const workDirs = opened.use(
    await WorkDirs.open({
      base: options.workBase,
      ownerId: options.uid,
      newId: options.newId,
      clock: options.clock,
      onRemoveFailed: options.onRemoveFailed,
    }),
  );
  const { ownerTag, root } = workDirs;
  opened.use(await guardOrphans(ownerTag, options.clock, options.onGuardLost, root));
  const { uid, newId, clock } = options;
  const shared = opened.use(new SharedDirectories(join(root, "shared"), uid, newId, clock));
  const hardLimits = parseHardLimits(await readFile("/proc/self/limits", "utf8"));
  const backend = new HostBackend(options, workDirs, shared, hardLimits, opened.move());
  try {
    await backend.tryOnce();
    return backend;
  } catch (error) {
    await backend[Symbol.asyncDispose]();
    throw error;
  }
}

class HostBackend implements SandboxBackend {
  readonly #options: BackendOptions;
  readonly #workDirs: WorkDirs;
  readonly #shared: SharedDirectories;
  readonly #hardLimits: HardLimits;
  readonly #opened: AsyncDisposable;
  /** Of the next sandbox; those of other workers are far away. */
  #mark: number;

  constructor(
    options: BackendOptions,
    workDirs: WorkDirs,
    shared: SharedDirectories,
    hardLimits: HardLimits,
    opened: AsyncDisposable,
  ) {
    this.#options = options;
    this.#workDirs = workDirs;
    this.#shared = shared;
    this.#hardLimits = hardLimits;
    this.#opened = opened;
    this.#mark = firstMark + Number.parseInt(options.newId().slice(0, markDigits), 16);
  }

  get scratchDir(): string {
    return this.#workDirs.root;
  }

  facts({ limits }: Profile): SandboxFacts {
    const clamped = clampedLimits(limits, this.#hardLimits);
    return { technology: "the bare host", enforcement, unenforced, checks: [], clamped };
  }

  async acquire(request: SandboxRequest, signal: AbortSignal): Promise<Sandbox> {
    signal.throwIfAborted();
    // Nothing keeps a command of the host to some hosts.
    if (request.network !== undefined)
      throw new SandboxError("the host backend has no networks", { isEgress: true });
    const workDir = await this.#workDirs.take();
    return new HostSandbox(this.#options, this.#hardLimits, request, workDir, this.#mark++);
  }

  share(path: string): Promise<SharedDirectory> {
    return this.#shared.share(path);
  }

  /** Throws SandboxError when a command cannot be started with limits and a mark. */
  async tryOnce(): Promise<void> {
    const nothing = { mounts: [], devices: [], environment: new Map<string, string>() };
    await using sandbox = await this.acquire(
      { profile: restrictiveProfile, memoryBound: "address-space", ...nothing },
      new AbortController().signal,
    );
    const execution = await sandbox.start({ argv: ["/usr/bin/true"] });
    const { exitCode, stderr } = await execution.exited;
    if (exitCode !== 0) throw new SandboxError(`cannot run a command: ${stderr.text.trim()}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#opened[Symbol.asyncDispose]();
  }
}

class HostSandbox implements Sandbox {
  readonly backend = "host";
  readonly enforcement = enforcement;
  readonly unenforced = unenforced;
  readonly workDir: WorkDir;
  readonly limits: Limits;
  readonly #options: BackendOptions;
  readonly #hardLimits: HardLimits;
  readonly #request: SandboxRequest;
  readonly #mark: number;
  readonly #paths: HostPaths;
  #isStarted = false;
  #execution: Execution | undefined;

  constructor(
    options: BackendOptions,
    hardLimits: HardLimits,
    request: SandboxRequest,
    workDir: WorkDir,
    mark: number,
  ) {
    this.workDir = workDir;
    this.limits = clampLimits(request.profile.limits, hardLimits);
    this.#options = options;
    this.#hardLimits = hardLimits;
    this.#request = request;
    this.#mark = mark;
    this.#paths = new HostPaths(workDir.path, [...request.mounts, ...(request.writable ?? [])]);
  }

  locate(insidePath: string): string {
    return this.#paths.locate(insidePath);
  }

  async start(launch: Launch): Promise<Execution> {
    if (this.#isStarted) throw new SandboxError("a sandbox is started once");
    this.#isStarted = true;
    const { memoryBound, environment, hasGateway = false } = this.#request;
    // RLIMIT_NPROC would count all processes that the user has on this host.
    const limits = { ...this.limits, processes: Infinity };
    this.#execution = await startOnHost(
      {
        argv: [
          ...limitPrefix(limits, memoryBound, this.#hardLimits),
          ...launch.argv.map((word) => this.#paths.locate(word)),
        ],
        environment: Object.fromEntries(
          [...environment].map(([name, value]) => [name, this.#paths.locateAll(value)]),
        ),
        workDir: this.workDir.path,
        hasStdin: launch.hasStdin ?? false,
        hasGateway,
        uid: this.#options.uid,
        mark: this.#mark,
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
