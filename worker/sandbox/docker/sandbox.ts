/**
 * One sandbox in a container, made for one call.
 */
import type { Limits } from "../../protocol/resource-limits.ts";
import type { Clock } from "../../support/clock.ts";
import { abortable } from "../../support/timeout.ts";
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

/** Removals under way until a new call waits for one of them. */
const maxRemovals = 64;
/** For requests whose effect has to be known: the engine goes on with what it was asked for. */
const unending = new AbortController().signal;

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

  async start(launch: Launch, signal: AbortSignal = unending): Promise<ContainerExecution> {
    if (this.#starting !== undefined) throw new SandboxError("a sandbox is started once");
    this.#starting = this.#start(launch, signal);
    return this.#starting;
  }

  async #start(launch: Launch, signal: AbortSignal): Promise<ContainerExecution> {
    const { engine, clock, ownerId, removals } = this.#parts;
    signal.throwIfAborted();
    if (removals.size >= maxRemovals) await abortable(Promise.race(removals), signal);
    await using opened = new AsyncDisposableStack();
    const gateway = this.gatewayPath && (await openGatewaySocket(this.workDir.path, ownerId));
    if (gateway) opened.defer(() => void gateway.destroy());
    const usage = opened.use(await this.#openUsage());
    const created = engine.create(this.#container(launch), unending);
    let asked: Promise<unknown> = created;
    const remove = (): void => this.#remove(created, asked);
    opened.defer(remove);
    const id = await abortable(created, signal);
    const hasStdin = launch.hasStdin ?? false;
    const connection = await engine.attach(id, hasStdin, signal);
    opened.defer(() => void connection.destroy());
    const startMs = clock.monotonicMs();
    asked = engine.start(id, unending);
    await abortable(asked, signal);
    opened.move();
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

  /**
   * Removes the container after the last request for it, if one was created. In the background: the
   * engine takes longer than an answer should.
   */
  #remove(created: Promise<string>, asked: Promise<unknown>): void {
    const { engine, removals, onRemoveFailed } = this.#parts;
    const removal = Promise.allSettled([created, asked])
      .then(([container]) =>
        container.status === "fulfilled" ? engine.remove(container.value, unending) : undefined,
      )
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
