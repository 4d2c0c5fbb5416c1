/**
 * The environments of a worker's tools: what each tool needs, and whether it may be served.
 */
import type { Runtime, ToolEntry } from "../manifest/manifest.ts";
import type { ToolsetLease, ToolsetRevision } from "../manifest/toolsets/snapshots.ts";
import { type Refusal, publicRefusal } from "../protocol/refusal.ts";
import { abortable } from "../support/timeout.ts";
import type { AllowedPackages } from "./allow.ts";
import { ChangingFiles, type ChangingFilesOptions } from "./changing-files.ts";
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

/** What environments are made with. */
export interface ToolEnvironmentsOptions extends InstallationsOptions, ChangingFilesOptions {
  readonly policy: PackagePolicy;
  readonly allowed: AllowedPackages;
  readonly toolsDirs: Readonly<Record<Runtime, string>>;
  /** The files of a toolset's state; undefined where it is gone. The caller owns the lease. */
  readonly leaseToolset?: ((of: ToolsetRevision) => ToolsetLease | undefined) | undefined;
  interpreterOf(tool: ToolEntry): Promise<Interpreter>;
  readonly installs: InstallMode;
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
  readonly #files: ChangingFiles;
  /** By the name of the tool: what its newest entry wants. */
  readonly #tools = new Map<string, ToolPackages>();
  /** By the packages of an entry: what sandboxes mount. */
  readonly #inForce = new Map<string, PackagesInForce>();

  constructor(options: ToolEnvironmentsOptions) {
    this.#options = options;
    this.#installations = new Installations(options, {
      toolsOf: (key) => this.#toolsOf(key),
      inForce: () => this.#inForce.values().map(({ installation }) => installation.key),
    });
    this.#files = new ChangingFiles(options, {
      planOf: (tool) => this.#planOf(tool),
      usable: () =>
        Array.from(this.#tools.values(), ({ tool }) => tool).filter((tool) => this.#follows(tool)),
      change: async (tool, plan, signal) => {
        // Its entry may have changed meanwhile.
        if (this.#tools.get(tool.name)?.tool === tool) await this.#admit(tool, plan, signal);
      },
      askAgain: () => this.#installations.askAgain(),
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
    this.#files.retain((tool) => {
      const now = wanted.get(tool.name);
      return now !== undefined && identityOf(now) === identityOf(tool);
    });
    this.#keepWanted();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const following = this.#files[Symbol.asyncDispose]();
    await this.#installations[Symbol.asyncDispose]();
    await following;
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
        return this.#refuseUntilInstalled(tool, signal);
    }
  }

  async #refuseUntilInstalled(tool: ToolEntry, signal: AbortSignal): Promise<Refusal | undefined> {
    this.#files.forget(tool.name);
    const plan = await this.#planOf(tool).catch((error: unknown) => {
      if (error instanceof EnvironmentError && this.#follows(tool))
        this.#files.refuse(tool, error.explained);
      throw error;
    });
    return this.#admit(tool, plan, signal);
  }

  /** What a tool with packages needs now. Throws EnvironmentError. */
  async #planOf(tool: ToolEntry): Promise<EnvironmentPlan> {
    const { packages } = tool;
    if (packages === undefined) throw new EnvironmentError("it names no packages");
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
    if (this.#follows(tool)) this.#files.follow();
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

  /** Whether the file of a tool can change without its entry, which a toolset's cannot. */
  #follows(tool: ToolEntry): boolean {
    return this.#options.installs === "background" && hasFile(tool) && tool.toolset === undefined;
  }
}

function hasFile({ packages }: PackagedTool): boolean {
  return packages?.lockfile !== undefined || packages?.requirementsFile !== undefined;
}

/** Equal for entries that want the same of the same interpreter. */
function identityOf(tool: PackagedTool): string {
  const { runtime, interpreter, packages, toolset } = tool;
  return JSON.stringify([runtime, interpreter, packages, hasFile(tool) ? toolset : undefined]);
}
