/**
 * A backend whose sandboxes are containers of an OCI runtime.
 */
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { ResourceMonitor } from "../accounting/resource-monitor.ts";
import { guardOrphans } from "../orphans.ts";
import { allowedCpus, systemDirectories } from "../proc/host.ts";
import { type Profile, restrictiveProfile } from "../profile.ts";
import { clampedLimits, parseHardLimits } from "../rlimits.ts";
import {
  type BackendOptions,
  type ExitReport,
  type Sandbox,
  type SandboxBackend,
  SandboxError,
  type SandboxFacts,
  type SandboxRequest,
  type SharedDirectory,
} from "../sandbox.ts";
import { SharedDirectories } from "../shared-directories.ts";
import { WorkDirs } from "../work/work-dirs.ts";
import type { OciRuntime } from "./runtime.ts";
import { OciSandbox, type OciSandboxParts } from "./sandbox.ts";

/** What a runtime is opened in. */
export interface RuntimePlace {
  /** Directory for this worker's containers, whose name no other worker's has. */
  readonly directory: string;
  /** The worker's own directory, by which a later worker sees whether it lives. */
  readonly root: string;
  /** See `ownerTag`. */
  readonly ownerTag: string;
}

/** A backend that can say what came of a trial. */
export interface OpenedOci {
  readonly backend: SandboxBackend;
  /** What a trial's command printed, and how it ended. */
  readonly trial: ExitReport;
}

/**
 * Prepares the work directories, opens the runtime and runs a command in a container. The caller
 * owns the backend. Throws SandboxError; rejects with the signal's reason.
 *
 * @param trialArgv the command, which has to succeed
 */
export async function openOci(
  options: BackendOptions,
  openRuntime: (place: RuntimePlace) => Promise<OciRuntime>,
  trialArgv: readonly string[],
  signal: AbortSignal,
): Promise<OpenedOci> {
  await using opened = new AsyncDisposableStack();
  const { uid, newId, clock, onRemoveFailed } = options;
  const workDirs = opened.use(
    await WorkDirs.open({ base: options.workBase, ownerId: uid, newId, clock, onRemoveFailed }),
  );
  const { ownerTag, root } = workDirs;
  opened.use(await guardOrphans(ownerTag, clock, options.onGuardLost));
  signal.throwIfAborted();
  // The tag is on the command line of whatever has a file in there.
  const directory = join(root, ownerTag);
  await mkdir(directory, { mode: 0o711 });
  const shared = opened.use(new SharedDirectories(join(root, "shared"), uid, newId, clock));
  const runtime = opened.use(await openRuntime({ directory, root, ownerTag }));
  const parts: OciSandboxParts = {
    runtime,
    bundles: directory,
    userId: uid ?? process.getuid?.() ?? 0,
    uid,
    clock,
    monitor: new ResourceMonitor(),
    hardLimits: parseHardLimits(await readFile("/proc/self/limits", "utf8")),
    cpuIds: await allowedCpus(),
    systemDirectories: await systemDirectories(),
  };
  const backend = new OciBackend(parts, workDirs, shared, opened.move());
  try {
    return { backend, trial: await backend.tryOnce(trialArgv, signal) };
  } catch (error) {
    await backend[Symbol.asyncDispose]();
    throw error;
  }
}

class OciBackend implements SandboxBackend {
  readonly #parts: OciSandboxParts;
  readonly #workDirs: WorkDirs;
  readonly #shared: SharedDirectories;
  readonly #opened: AsyncDisposable;
  #turn = 0;

  constructor(
    parts: OciSandboxParts,
    workDirs: WorkDirs,
    shared: SharedDirectories,
    opened: AsyncDisposable,
  ) {
    this.#parts = parts;
    this.#workDirs = workDirs;
    this.#shared = shared;
    this.#opened = opened;
  }

  get scratchDir(): string {
    return this.#workDirs.root;
  }

  facts({ limits }: Profile): SandboxFacts {
    const { runtime, hardLimits } = this.#parts;
    const { technology, enforcement, unenforced } = runtime;
    const clamped = clampedLimits(limits, hardLimits);
    return { technology, enforcement, unenforced, checks: [], clamped };
  }

  async acquire(request: SandboxRequest, signal: AbortSignal): Promise<Sandbox> {
    signal.throwIfAborted();
    const { backend } = this.#parts.runtime;
    if (request.network !== undefined || request.profile.network !== "none")
      throw new SandboxError(`the backend ${backend} has no networks`, { isEgress: true });
    if (request.devices.length > 0)
      throw new SandboxError(`the backend ${backend} has no devices of the host`);
    return this.#make(request);
  }

  share(path: string): Promise<SharedDirectory> {
    return this.#shared.share(path);
  }

  /** Throws SandboxError where a command does not succeed in a container. */
  async tryOnce(argv: readonly string[], signal: AbortSignal): Promise<ExitReport> {
    const nothing = { mounts: [], devices: [], environment: new Map<string, string>() };
    const profile = restrictiveProfile;
    await using sandbox = await this.#make({ profile, memoryBound: "address-space", ...nothing });
    const execution = await sandbox.start({ argv });
    const stop = (): void => void execution.stop(0).catch(() => undefined);
    signal.addEventListener("abort", stop, { once: true });
    const report = await execution.exited;
    signal.removeEventListener("abort", stop);
    signal.throwIfAborted();
    if (report.exitCode === 0) return report;
    const { backend } = this.#parts.runtime;
    const said = report.stderr.text.trim() || `its command ended with ${report.exitCode}`;
    throw new SandboxError(`the backend ${backend} cannot run a container: ${said}`);
  }

  async #make(request: SandboxRequest): Promise<OciSandbox> {
    const workDir = await this.#workDirs.take();
    return new OciSandbox(this.#parts, request, workDir, this.#turn++);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#opened[Symbol.asyncDispose]();
  }
}
