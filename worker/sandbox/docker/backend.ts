/**
 * Sandboxes in containers of an engine with the Docker Engine API, a new one for each call.
 */
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { abortable } from "../../support/timeout.ts";
import { ResourceMonitor } from "../accounting/resource-monitor.ts";
import { baseEtc, systemDirectories } from "../proc/host.ts";
import { type Profile, restrictiveProfile } from "../profile.ts";
import {
  type BackendOptions,
  type Sandbox,
  type SandboxBackend,
  SandboxError,
  type SandboxFacts,
  type SandboxRequest,
  type SharedDirectory,
} from "../sandbox.ts";
import { SharedDirectories } from "../shared-directories.ts";
import { isDeadOwner } from "../work/dead-owners.ts";
import { WorkDirs } from "../work/work-dirs.ts";
import { workerLabel } from "./container.ts";
import { enforcementOf, gapsOf } from "./enforcement.ts";
import { EngineClient } from "./engine/client.ts";
import { Engine, type EngineInfo } from "./engine/containers.ts";
import { openImage } from "./image.ts";
import { ContainerSandbox, type ContainerSandboxParts } from "./sandbox.ts";
import type { DockerSettings } from "./settings.ts";
import { engineCgroups } from "./usage.ts";

/** Host uid of sandboxes of a worker that is root and names none: nobody. */
const nobody = 65_534;

/** Options of the docker backend. */
export interface DockerOptions extends BackendOptions, DockerSettings {}

/**
 * Removes the containers of dead workers, and runs a command. The caller owns the backend. Throws
 * SandboxError; rejects with the signal's reason.
 */
export async function openDocker(
  options: DockerOptions,
  signal: AbortSignal = AbortSignal.any([]),
): Promise<SandboxBackend> {
  await using opened = new AsyncDisposableStack();
  const { clock, newId, onRemoveFailed, dockerSocket } = options;
  const engine = new Engine(new EngineClient(dockerSocket, clock));
  const info = await engine.info(signal);
  if (info.OSType !== "linux")
    throw new SandboxError("the engine runs no Linux containers", { setting: "dockerSocket" });
  // Before their directories are.
  await sweepContainers(engine, options, signal);
  const ownUid = process.geteuid?.() ?? nobody;
  const uid = options.uid ?? (ownUid === 0 ? nobody : ownUid);
  const ownerId = uid === ownUid ? undefined : uid;
  const base = options.workBase;
  const workDirs = opened.use(await WorkDirs.open({ base, ownerId, newId, clock, onRemoveFailed }));
  const { root } = workDirs;
  const shared = opened.use(new SharedDirectories(join(root, "shared"), ownerId, newId, clock));
  const directories = await systemDirectories();
  const removals = new Set<Promise<void>>();
  const parts = {
    ...{ engine, clock, uid, ownerId, onRemoveFailed, removals },
    systemDirectories: directories,
    imageId: await openImage(engine, directories, signal),
    cpus: info.NCPU,
    etc: await present(baseEtc),
    worker: root,
    monitor: new ResourceMonitor(),
    cgroups: engineCgroups(info),
  };
  opened.defer(async () => void (await Promise.all(removals)));
  const isSeen = await tryOnce(parts, workDirs, signal);
  return new DockerBackend(parts, { info, isSeen }, workDirs, shared, opened.move());
}

/** Removes what dead workers have left. */
async function sweepContainers(
  engine: Engine,
  options: Pick<BackendOptions, "workBase" | "basesBelow" | "onRemoveFailed">,
  signal: AbortSignal,
): Promise<void> {
  for (const [id, worker] of await engine.labelled(workerLabel, signal))
    if (await isDeadOwner(worker, options))
      await engine.remove(id, signal).catch(options.onRemoveFailed);
}

async function present(paths: readonly string[]): Promise<readonly string[]> {
  const found = await Promise.all(
    paths.map(async (path) => ((await stat(path).catch(() => undefined)) ? [path] : [])),
  );
  return found.flat();
}

/** Whether the worker sees a container's processes. Throws SandboxError where none can be made. */
async function tryOnce(
  parts: Omit<ContainerSandboxParts, "facts">,
  workDirs: WorkDirs,
  signal: AbortSignal,
): Promise<boolean> {
  const nothing = { mounts: [], devices: [], environment: new Map<string, string>() };
  const request = {
    profile: restrictiveProfile,
    memoryBound: "address-space",
    ...nothing,
  } as const;
  const facts = { enforcement: enforcementOf(undefined), unenforced: [] };
  await using sandbox = new ContainerSandbox({ ...parts, facts }, request, await workDirs.take());
  signal.throwIfAborted();
  const execution = await sandbox.start({ argv: ["/bin/cat"], hasStdin: true }, signal);
  const isSeen = await abortable(execution.isSeen, signal);
  execution.stdin?.end();
  const { exitCode, stderr } = await abortable(execution.exited, signal);
  if (exitCode !== 0) throw new SandboxError(`cannot run a command: ${stderr.text.trim()}`);
  return isSeen;
}

interface Findings {
  readonly info: EngineInfo;
  readonly isSeen: boolean;
}

class DockerBackend implements SandboxBackend {
  readonly #parts: ContainerSandboxParts;
  readonly #technology: string;
  readonly #workDirs: WorkDirs;
  readonly #shared: SharedDirectories;
  readonly #opened: AsyncDisposable;

  constructor(
    parts: Omit<ContainerSandboxParts, "facts">,
    findings: Findings,
    workDirs: WorkDirs,
    shared: SharedDirectories,
    opened: AsyncDisposable,
  ) {
    const { info } = findings;
    const facts = { enforcement: enforcementOf(findings), unenforced: gapsOf(findings) };
    this.#parts = { ...parts, facts };
    this.#technology = `container engine ${info.ServerVersion}`;
    this.#workDirs = workDirs;
    this.#shared = shared;
    this.#opened = opened;
  }

  get scratchDir(): string {
    return this.#workDirs.root;
  }

  facts(_profile: Profile): SandboxFacts {
    return { technology: this.#technology, ...this.#parts.facts, checks: [], clamped: [] };
  }

  async acquire(request: SandboxRequest, signal: AbortSignal): Promise<Sandbox> {
    signal.throwIfAborted();
    const { name, network } = request.profile;
    if (request.network !== undefined || network !== "none") {
      const reason = `the docker backend has no networks, and the profile ${name} asks for one`;
      throw new SandboxError(reason, { isEgress: true });
    }
    return new ContainerSandbox(this.#parts, request, await this.#workDirs.take());
  }

  share(path: string): Promise<SharedDirectory> {
    return this.#shared.share(path);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#opened[Symbol.asyncDispose]();
  }
}
