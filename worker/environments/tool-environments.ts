/**
 * The environments of a worker's tools: what each tool needs, and whether it may be served.
 */
import type { Runtime, ToolEntry } from "../manifest/manifest.ts";
import type { ToolsetLease, ToolsetRevision } from "../manifest/toolsets/snapshots.ts";
import { type Refusal, publicRefusal } from "../protocol/refusal.ts";
import type { Clock } from "../support/clock.ts";
import { abortable } from "../support/timeout.ts";
import { type EventLog, logEvent } from "../telemetry/log-event.ts";
import type { AllowedPackages } from "./allow.ts";
import {
  EnvironmentError,
  type EnvironmentPlan,
  type Installation,
  type Interpreter,
  type PackagePolicy,
} from "./environments.ts";
import { missingPackage } from "./installed-check.ts";
import {
  type InstallMode,
  Installations,
  type InstallationsOptions,
  type PackageCounts,
  type WantedEnvironment,
} from "./installations.ts";
import { planOf } from "./plans.ts";

/** Milliseconds between two looks at requirements files and lockfiles. */
const filesPollMs = 5_000;

/** What environments are made with. */
export interface ToolEnvironmentsOptions extends InstallationsOptions {
  readonly policy: PackagePolicy;
  readonly allowed: AllowedPackages;
  readonly toolsDirs: Readonly<Record<Runtime, string>>;
  /** The files of a toolset's state; undefined where it is gone. The caller owns the lease. */
  readonly leaseToolset?: ((of: ToolsetRevision) => ToolsetLease | undefined) | undefined;
  interpreterOf(tool: ToolEntry): Promise<Interpreter>;
  readonly installs: InstallMode;
  readonly clock: Clock;
  readonly log: EventLog<"info" | "warn">;
  /** Replaces the constant of this file. */
  readonly filesPollMs?: number | undefined;
}

/** What of an entry decides its environment. */
export type PackagedTool = Pick<ToolEntry, "runtime" | "interpreter" | "packages" | "toolset">;

/** A tool's packages. */
interface ToolPackages {
  readonly tool: ToolEntry;
  readonly wanted: WantedEnvironment;
}

/** Packages that sandboxes mount, and what they were made from. */
interface PackagesInForce {
  readonly plan: EnvironmentPlan;
  readonly installation: Installation;
}

/** The environments of a worker's tools. The owner disposes it after the last sandbox. */
export class ToolEnvironments implements AsyncDisposable {
  readonly #options: ToolEnvironmentsOptions;
  readonly #installations: Installations;
  readonly #closing = new AbortController();
  /** By the name of the tool: what its newest entry wants. */
  readonly #tools = new Map<string, ToolPackages>();
  /** By the packages of an entry: what sandboxes mount. */
  readonly #inForce = new Map<string, PackagesInForce>();
  #following: Promise<void> | undefined;

  constructor(options: ToolEnvironmentsOptions) {
    this.#options = options;
    this.#installations = new Installations(options, {
      toolsOf: (key) => this.#toolsOf(key),
      inForce: () => this.#inForce.values().map(({ installation }) => installation.key),
    });
  }

  /** The environment of a served tool; undefined for a tool without packages of its own. */
  installationOf(tool: PackagedTool): Installation | undefined {
    if (tool.packages === undefined) return undefined;
    return this.#inForce.get(identityOf(tool))?.installation;
  }

  /** Resolves when a refused tool may be served, or its reason has changed. */
  get changed(): Promise<void> {
    return this.#installations.changed;
  }

  /** Undefined while no tool has packages of its own. */
  get counts(): PackageCounts | undefined {
    return this.#installations.counts;
  }

  /** A line for each tool whose packages could not be installed. */
  get warnings(): readonly string[] {
    return Array.from(this.#tools.values()).flatMap(({ tool, wanted: { state } }) =>
      state.kind === "failed" ? [`tool "${tool.name}": ${state.reason}`] : [],
    );
  }

  /**
   * Why the packages of a tool keep it from being served. Starts their installation, which goes on
   * in the background. Rejects with the signal's reason.
   */
  async refuse(tool: ToolEntry, signal: AbortSignal): Promise<Refusal | undefined> {
    try {
      return await this.#refuse(tool, signal);
    } catch (error) {
      if (!(error instanceof EnvironmentError)) throw error;
      return { reason: error.explained, publicReason: error.publicReason };
    }
  }

  /**
   * Forgets all other entries: their installations are not tried again, and may be removed. To be
   * called between two admissions, so that nothing is lost that was admitted for a later manifest.
   *
   * @param newest the newest entry of each tool, which is not always the served one
   */
  retain(served: Iterable<ToolEntry>, newest: Iterable<ToolEntry>): void {
    const wanted = new Map(Array.from(newest, (tool) => [tool.name, tool]));
    const identities = new Set([...served, ...wanted.values()].map(identityOf));
    for (const identity of this.#inForce.keys())
      if (!identities.has(identity)) this.#inForce.delete(identity);
    for (const [name, { tool }] of this.#tools) {
      const now = wanted.get(name);
      if (now !== undefined && identityOf(now) === identityOf(tool)) continue;
      this.#tools.delete(name);
      // An entry that came back is served, and was not asked about again.
      const former = now && this.#inForce.get(identityOf(now));
      if (now !== undefined && former !== undefined) this.#want(now, former.plan);
    }
    this.#keepWanted();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(new Error("the worker is closing"));
    await this.#installations[Symbol.asyncDispose]();
    await this.#following;
  }

  async #refuse(tool: ToolEntry, signal: AbortSignal): Promise<Refusal | undefined> {
    const { packages } = tool;
    const { policy } = this.#options;
    if (packages === undefined) {
      this.#tools.delete(tool.name);
      return undefined;
    }
    switch (policy) {
      case "refuse":
        throw new EnvironmentError("it names packages, and PACKAGE_POLICY is refuse", {
          publicReason: "the worker installs no packages",
        });
      case "check": {
        using files = this.#filesOf(tool);
        const options = { ...this.#options, toolsDir: files.directory };
        return publicRefusal(await missingPackage(tool, packages, options, signal));
      }
      case "install":
        return this.#refuseUntilInstalled(tool, packages, signal);
    }
  }

  async #refuseUntilInstalled(
    tool: ToolEntry,
    packages: NonNullable<ToolEntry["packages"]>,
    signal: AbortSignal,
  ): Promise<Refusal | undefined> {
    return this.#admit(tool, await this.#planOf(tool, packages), signal);
  }

  /** What a tool needs now. Throws EnvironmentError. */
  async #planOf(
    tool: ToolEntry,
    packages: NonNullable<ToolEntry["packages"]>,
  ): Promise<EnvironmentPlan> {
    const { allowed, interpreterOf, builder } = this.#options;
    const fingerprint = (runtime: Runtime) => builder.registry.fingerprint(runtime);
    using files = this.#filesOf(tool);
    const { directory } = files;
    const plan = await planOf(tool, packages, { directory, interpreterOf, fingerprint });
    allowed.require(tool.runtime, plan.names);
    return plan;
  }

  /** Where the requirements file or lockfile of a tool lies. Throws EnvironmentError. */
  #filesOf({ runtime, toolset }: ToolEntry): Pick<ToolsetLease, "directory"> & Disposable {
    const { toolsDirs, leaseToolset } = this.#options;
    if (toolset === undefined)
      return { directory: toolsDirs[runtime], [Symbol.dispose]: () => undefined };
    const lease = leaseToolset?.(toolset);
    if (lease !== undefined) return lease;
    throw new EnvironmentError(`the toolset "${toolset.name}" has changed meanwhile`);
  }

  #want(tool: ToolEntry, plan: EnvironmentPlan): WantedEnvironment {
    const wanted = this.#installations.want(plan);
    this.#tools.set(tool.name, { tool, wanted });
    return wanted;
  }

  async #admit(
    tool: ToolEntry,
    plan: EnvironmentPlan,
    signal: AbortSignal,
  ): Promise<Refusal | undefined> {
    const { installs } = this.#options;
    const wanted = this.#want(tool, plan);
    this.#keepWanted();
    if (installs === "background" && hasChangingFile(tool))
      this.#following ??= this.#followFiles().catch(() => undefined);
    await abortable(installs === "wait" ? wanted.attempted : wanted.looked, signal);
    switch (wanted.state.kind) {
      case "ready":
        this.#inForce.set(identityOf(tool), { plan, installation: wanted.state.installation });
        return undefined;
      case "failed": {
        const { reason, publicReason } = wanted.state;
        return { reason, publicReason, keepsServed: true };
      }
      case "installing":
        return { ...publicRefusal("its packages are being installed"), keepsServed: true };
    }
  }

  #toolsOf(key: string): readonly string[] {
    return [...this.#tools.values()]
      .filter(({ wanted }) => wanted.key === key)
      .map(({ tool }) => tool.name);
  }

  #keepWanted(): void {
    this.#installations.keep(new Set(Array.from(this.#tools.values(), ({ wanted }) => wanted.key)));
  }

  /**
   * Asks again about tools whose requirements file or lockfile may have changed, until the
   * disposal. A served tool changes over when the environment of the new content is there.
   */
  async #followFiles(): Promise<void> {
    const { clock, log } = this.#options;
    const { signal } = this.#closing;
    const reported = new Map<string, string>();
    for (;;) {
      await clock.sleep(this.#options.filesPollMs ?? filesPollMs, signal);
      for (const { tool } of [...this.#tools.values()].filter(({ tool }) =>
        hasChangingFile(tool),
      )) {
        const reason = await this.#followFile(tool, signal);
        if (reason !== undefined && reason !== reported.get(tool.name))
          logEvent(log, "packages.files_unusable", { tool: tool.name, reason });
        reported.set(tool.name, reason ?? "");
      }
    }
  }

  /** Why the file of a tool cannot be used, or undefined. Rejects only with the signal's reason. */
  async #followFile(tool: ToolEntry, signal: AbortSignal): Promise<string | undefined> {
    const { packages, name } = tool;
    try {
      if (packages === undefined) return undefined;
      const plan = await this.#planOf(tool, packages);
      // Its entry may have changed meanwhile.
      if (this.#tools.get(name)?.tool !== tool) return undefined;
      const refusal = await this.#admit(tool, plan, signal);
      return refusal?.keepsServed === true ? undefined : refusal?.reason;
    } catch (error) {
      signal.throwIfAborted();
      return error instanceof EnvironmentError ? error.explained : `not checked: ${String(error)}`;
    }
  }
}

/** Whether what a tool needs can change without its entry, which a toolset's files cannot. */
function hasChangingFile(tool: ToolEntry): boolean {
  return hasFile(tool) && tool.toolset === undefined;
}

function hasFile({ packages }: PackagedTool): boolean {
  return packages?.lockfile !== undefined || packages?.requirementsFile !== undefined;
}

/** Equal for entries that want the same of the same interpreter. */
function identityOf(tool: PackagedTool): string {
  const { runtime, interpreter, packages, toolset } = tool;
  return JSON.stringify([runtime, interpreter, packages, hasFile(tool) ? toolset : undefined]);
}
