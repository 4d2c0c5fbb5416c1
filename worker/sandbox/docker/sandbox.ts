/**
 * One sandbox in a container, made for one call.
 */
import type { Limits } from "../../protocol/resource-limits.ts";
import type { Clock } from "../../support/clock.ts";
import type { ResourceMonitor } from "../accounting/resource-monitor.ts";
import { type SandboxCgroups, SandboxUsage } from "../accounting/sandbox-usage.ts";
import type { SystemDirectory } from "../proc/host.ts";
import {
  type Enforcement,
  type Launch,
  type Sandbox,
  SandboxError,
  type SandboxRequest,
  type Unenforced,
  workDirInside,
} from "../sandbox.ts";
import { gatewayPathInside, openGatewaySocket } from "../work/gateway-socket.ts";
import type { WorkDir } from "../work/work-dir.ts";
import { containerOf, memoryDirectories } from "./container.ts";
import type { Engine } from "./engine/containers.ts";
import { ContainerExecution } from "./execution.ts";

/** What all sandboxes of a worker have in common. */
export interface ContainerSandboxParts {
  readonly engine: Engine;
  readonly clock: Clock;
  /** Host uid and gid inside. */
  readonly uid: number;
  /** The same, or undefined for the worker's own. */
  readonly ownerId: number | undefined;
  readonly imageId: string;
  readonly cpus: number;
  readonly systemDirectories: readonly SystemDirectory[];
  readonly etc: readonly string[];
  readonly worker: string;
  readonly monitor: ResourceMonitor;
  readonly cgroups: SandboxCgroups;
  /** Removals of containers that are under way. */
  readonly removals: Set<Promise<void>>;
  onRemoveFailed(error: unknown): void;
  readonly facts: {
    readonly enforcement: Enforcement;
    readonly unenforced: readonly Unenforced[];
  };
}

/** A sandbox that owns its work directory. */
export class ContainerSandbox implements Sandbox {
  readonly backend = "docker";
  readonly workDir: WorkDir;
  readonly #parts: ContainerSandboxParts;
  readonly #request: SandboxRequest;
  /** Fulfils when no container will be started any more. */
  #starting: Promise<ContainerExecution> | undefined;

  constructor(parts: ContainerSandboxParts, request: SandboxRequest, workDir: WorkDir) {
    this.workDir = workDir;
    this.#parts = parts;
    this.#request = request;
  }

  get limits(): Limits {
    return this.#request.profile.limits;
  }

  get enforcement(): Enforcement {
    return this.#parts.facts.enforcement;
  }

  get unenforced(): readonly Unenforced[] {
    return this.#parts.facts.unenforced;
  }

  get gatewayPath(): string | undefined {
    return this.#request.hasGateway === true ? gatewayPathInside : undefined;
  }

  /** Everything is mounted where it is called. */
  locate(insidePath: string): string {
    return insidePath;
  }

  async start(launch: Launch): Promise<ContainerExecution> {
    if (this.#starting !== undefined) throw new SandboxError("a sandbox is started once");
    this.#starting = this.#start(launch);
    return this.#starting;
  }

  async #start(launch: Launch): Promise<ContainerExecution> {
    const { engine, clock, ownerId } = this.#parts;
    const signal = AbortSignal.any([]);
    await using opened = new AsyncDisposableStack();
    const gateway = this.gatewayPath && (await openGatewaySocket(this.workDir.path, ownerId));
    if (gateway) opened.defer(() => void gateway.destroy());
    const usage = opened.use(await this.#openUsage());
    const id = await engine.create(this.#container(launch), signal);
    opened.defer(() => this.#remove(id));
    const hasStdin = launch.hasStdin ?? false;
    const connection = await engine.attach(id, hasStdin, signal);
    opened.defer(() => void connection.destroy());
    const startMs = clock.monotonicMs();
    await engine.start(id, signal);
    opened.move();
    const remove = (): void => this.#remove(id);
    return new ContainerExecution(
      { engine, clock, id, connection, hasStdin, gateway: gateway || undefined, usage, remove },
      startMs,
    );
  }

  #container(launch: Launch): object {
    const { workDir, limits } = this;
    const { profile } = this.#request;
    const etc = profile.readsEtc ? ["/etc"] : this.#parts.etc;
    const common = { ...this.#parts, etc, limits, launch };
    return containerOf({ ...common, request: this.#request, workDir: workDir.path });
  }

  #openUsage(): Promise<SandboxUsage> {
    const { monitor, cgroups } = this.#parts;
    const { profile, devices } = this.#request;
    const workDir = this.workDir.path;
    return SandboxUsage.open(monitor, cgroups, {
      limits: this.limits,
      workDir,
      tmpfs: { directories: memoryDirectories(profile), workDirInside, workDir },
      hasDevices: devices.length > 0,
      commandIsChild: true,
    });
  }

  /** In the background: no process is left, and the engine takes longer than an answer should. */
  #remove(id: string): void {
    const { engine, removals, onRemoveFailed } = this.#parts;
    const removal = engine
      .remove(id, AbortSignal.any([]))
      .catch(onRemoveFailed)
      .finally(() => removals.delete(removal));
    removals.add(removal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      const execution = await this.#starting?.catch(() => undefined);
      await execution?.stop(0);
    } finally {
      await this.workDir[Symbol.asyncDispose]();
    }
  }
}
