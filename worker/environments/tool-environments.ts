/**
 * The environments of a worker's tools: installed in the background, kept ready, tried again.
 */
import type { Runtime, ToolEntry } from "../manifest/manifest.ts";
import type { Refusal } from "../protocol/refusal.ts";
import { backoffDelays } from "../support/backoff.ts";
import type { Clock } from "../support/clock.ts";
import { Condition } from "../support/condition.ts";
import { Semaphore } from "../support/semaphore.ts";
import { abortable } from "../support/timeout.ts";
import { type EventLog, logEvent } from "../telemetry/log-event.ts";
import type { AllowedPackages } from "./allow.ts";
import type { BuilderParts } from "./build/python.ts";
import { buildEnvironment } from "./builder.ts";
import {
  EnvironmentError,
  type EnvironmentPlan,
  type Installation,
  type Interpreter,
  type PackagePolicy,
} from "./environments.ts";
import { missingPackage } from "./installed-check.ts";
import { type PlanOptions, planOf } from "./plans.ts";
import type { EnvironmentStore } from "./store.ts";
import { Upkeep } from "./upkeep.ts";

/** Installations that run at once. */
export const maxInstallations = 4;
/** Milliseconds between two attempts of a failed installation. */
const retryMs = { baseMs: 20_000, capMs: 600_000 };
/** Milliseconds between two looks at requirements files and lockfiles. */
const filesPollMs = 5_000;

/**
 * How packages are installed that are not there: in the background, before a tool is admitted, as
 * by commands that end, or not at all.
 */
export type InstallMode = "background" | "wait" | "never";

const notInstalled: Refusal = {
  reason: "its packages are not installed yet",
  publicReason: "its packages are not installed yet",
};

/** What environments are made with. */
export interface ToolEnvironmentsOptions {
  readonly policy: PackagePolicy;
  readonly allowed: AllowedPackages;
  readonly toolsDirs: Readonly<Record<Runtime, string>>;
  interpreterOf(tool: ToolEntry): Promise<Interpreter>;
  readonly builder: Omit<BuilderParts, "requireAllowed">;
  /** Opened when the first tool needs it. */
  openStore(): Promise<EnvironmentStore>;
  readonly keepMs: number;
  readonly maxBytes: number;
  readonly installs: InstallMode;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: EventLog<"info" | "warn">;
  /** Replace the constants of this file. */
  readonly filesPollMs?: number | undefined;
  readonly retryMs?: { readonly baseMs: number; readonly capMs: number } | undefined;
}

/** What of an entry decides its environment. */
export type PackagedTool = Pick<ToolEntry, "runtime" | "interpreter" | "packages">;

/** How many environments are in which state. */
export interface PackageCounts {
  readonly ready: number;
  readonly installing: number;
  readonly failed: number;
}

/** An environment on its way. */
interface Wanted {
  readonly plan: EnvironmentPlan;
  state:
    | { readonly kind: "installing" }
    | { readonly kind: "ready"; readonly installation: Installation }
    | { readonly kind: "failed"; readonly reason: string; readonly publicReason: string };
  /** Resolves after the first attempt. */
  readonly attempted: Promise<void>;
  /** Ends the attempts when no tool wants it. */
  readonly stop: AbortController;
}

/** A tool's packages. */
interface ToolPackages {
  readonly tool: ToolEntry;
  readonly wanted: Wanted;
}

/** The environments of a worker's tools. The owner disposes it after the last sandbox. */
export class ToolEnvironments implements AsyncDisposable {
  readonly #options: ToolEnvironmentsOptions;
  readonly #installing = new Semaphore({ capacity: maxInstallations, maxWaiting: Infinity });
  readonly #closing = new AbortController();
  readonly #change = new Condition();
  /** By key. */
  readonly #wanted = new Map<string, Wanted>();
  /** By the name of the tool: what its newest entry wants. */
  readonly #tools = new Map<string, ToolPackages>();
  /** By the packages of an entry: what sandboxes mount. */
  readonly #ready = new Map<string, Installation>();
  readonly #running = new Set<Promise<void>>();
  #store: Promise<EnvironmentStore> | undefined;

  constructor(options: ToolEnvironmentsOptions) {
    this.#options = options;
  }

  /** The environment of a served tool; undefined for a tool without packages of its own. */
  installationOf(tool: PackagedTool): Installation | undefined {
    return tool.packages === undefined ? undefined : this.#ready.get(identityOf(tool));
  }

  /** Resolves when a refused tool may be served, or its reason has changed. */
  get changed(): Promise<void> {
    return this.#change.changed;
  }

  /** Undefined while no tool has packages of its own. */
  get counts(): PackageCounts | undefined {
    if (this.#wanted.size === 0) return undefined;
    const counts = { ready: 0, installing: 0, failed: 0 };
    for (const { state } of this.#wanted.values()) counts[state.kind]++;
    return counts;
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
      return { reason: reasonOf(error), publicReason: error.publicReason };
    }
  }

  /** Forgets all other tools: their installations are not tried again, and may be removed. */
  retain(tools: Iterable<ToolEntry>): void {
    const kept = [...tools];
    const names = new Set(kept.map(({ name }) => name));
    for (const name of this.#tools.keys()) if (!names.has(name)) this.#tools.delete(name);
    const newest = Array.from(this.#tools.values(), ({ tool }) => tool);
    const identities = new Set([...kept, ...newest].map(identityOf));
    for (const identity of this.#ready.keys())
      if (!identities.has(identity)) this.#ready.delete(identity);
    this.#forgetUnwanted();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(new Error("the worker is closing"));
    await Promise.allSettled(this.#running);
    const store = await this.#store?.catch(() => undefined);
    await store?.[Symbol.asyncDispose]();
  }

  async #refuse(tool: ToolEntry, signal: AbortSignal): Promise<Refusal | undefined> {
    const { packages } = tool;
    const { policy, allowed, toolsDirs, installs } = this.#options;
    if (packages === undefined) {
      this.#tools.delete(tool.name);
      return undefined;
    }
    if (policy === "refuse")
      throw new EnvironmentError("it names packages, and PACKAGE_POLICY is refuse", {
        publicReason: "the worker installs no packages",
      });
    if (policy === "check") {
      const options = { ...this.#options, toolsDir: toolsDirs[tool.runtime] };
      const reason = await missingPackage(tool, packages, options, signal);
      return reason === undefined ? undefined : { reason, publicReason: reason };
    }
    const plan = await planOf(tool, packages, this.#planOptions());
    allowed.require(plan.names);
    if (installs === "never" && !this.#wanted.has(plan.key)) {
      if ((await (await this.#openStore()).find(plan.key)) === undefined) return notInstalled;
    }
    const wanted = await this.#want(plan);
    this.#tools.set(tool.name, { tool, wanted });
    this.#forgetUnwanted();
    if (installs === "wait") await abortable(wanted.attempted, signal);
    const { state } = wanted;
    if (state.kind === "ready") {
      this.#ready.set(identityOf(tool), state.installation);
      return undefined;
    }
    if (state.kind === "failed") {
      const { reason, publicReason } = state;
      return { reason, publicReason, keepsServed: true };
    }
    const reason = "its packages are being installed";
    return { reason, publicReason: reason, keepsServed: true };
  }

  /** What is wanted by this plan: there already, on its way, or started now. */
  async #want(plan: EnvironmentPlan): Promise<Wanted> {
    const known = this.#wanted.get(plan.key);
    if (known !== undefined) return known;
    const store = await this.#openStore();
    const present = await store.use(plan.key);
    const attempted = Promise.withResolvers<void>();
    const stop = new AbortController();
    const parts = { plan, attempted: attempted.promise, stop };
    const wanted: Wanted = present
      ? { ...parts, state: { kind: "ready", installation: present } }
      : { ...parts, state: { kind: "installing" } };
    this.#wanted.set(plan.key, wanted);
    if (present) attempted.resolve();
    else
      this.#run((signal) => this.#install(wanted, store, attempted.resolve, signal), stop.signal);
    return wanted;
  }

  /** Installs until it succeeds, or no tool wants it any more. */
  async #install(
    wanted: Wanted,
    store: EnvironmentStore,
    onAttempted: () => void,
    signal: AbortSignal,
  ): Promise<void> {
    const { clock, random, log, allowed, builder } = this.#options;
    const { plan } = wanted;
    const { key, runtime, title: packages } = plan;
    const delays = backoffDelays({ ...(this.#options.retryMs ?? retryMs), random });
    const parts = {
      ...builder,
      requireAllowed: (names: Iterable<string>) => allowed.require(names),
    };
    const onBegin = (): void =>
      logEvent(log, "packages.installing", { key, runtime, packages, tools: this.#toolsOf(key) });
    for (;;) {
      try {
        using _permit = await this.#installing.acquire(signal);
        const options = { store, parts, clock, onBegin };
        const installation = await buildEnvironment(plan, options, signal);
        const { installer, sizeBytes, tookMs } = installation.facts;
        const facts = { key, packages, installer, sizeBytes, tookMs };
        logEvent(log, "packages.installed", { ...facts, tools: this.#toolsOf(key) });
        this.#become(wanted, { kind: "ready", installation });
        return onAttempted();
      } catch (error) {
        signal.throwIfAborted();
        const delayMs = Math.round(delays.next().value);
        const known = error instanceof EnvironmentError ? error : undefined;
        const reason = known === undefined ? "the build failed" : reasonOf(known);
        logEvent(log, "packages.failed", {
          ...{ key, packages, tools: this.#toolsOf(key), reason },
          ...{ output: known?.output, retryMs: delayMs },
          err: known === undefined ? error : known.cause,
        });
        const publicReason = known?.publicReason ?? "its packages could not be installed";
        this.#become(wanted, {
          kind: "failed",
          reason: `its packages could not be installed: ${reason}`,
          publicReason,
        });
        onAttempted();
        await clock.sleep(delayMs, signal);
      }
    }
  }

  #become(wanted: Wanted, state: Wanted["state"]): void {
    wanted.state = state;
    if (state.kind === "ready")
      for (const { tool, wanted: own } of this.#tools.values())
        if (own === wanted) this.#ready.set(identityOf(tool), state.installation);
    this.#change.notify();
  }

  #toolsOf(key: string): readonly string[] {
    return [...this.#tools.values()]
      .filter(({ wanted }) => wanted.plan.key === key)
      .map(({ tool }) => tool.name);
  }

  /** Ends attempts that no tool waits for. */
  #forgetUnwanted(): void {
    const keys = new Set(Array.from(this.#tools.values(), ({ wanted }) => wanted.plan.key));
    for (const [key, { stop }] of this.#wanted) {
      if (keys.has(key)) continue;
      this.#wanted.delete(key);
      stop.abort(new Error("no tool needs these packages"));
    }
  }

  #openStore(): Promise<EnvironmentStore> {
    const { clock, keepMs, maxBytes, log, openStore } = this.#options;
    this.#store ??= openStore().then((store) => {
      const inForce = (): Iterable<string> => [
        ...this.#wanted.keys(),
        ...Array.from(this.#ready.values(), ({ key }) => key),
      ];
      const upkeep = new Upkeep({ store, clock, keepMs, maxBytes, log, inForce });
      this.#run((signal) => upkeep.run(signal));
      this.#run((signal) => this.#followFiles(signal));
      return store;
    });
    // It may be mended while the worker runs.
    this.#store.catch(() => (this.#store = undefined));
    return this.#store;
  }

  /** Plans again when a requirements file or a lockfile of a tool changes. */
  async #followFiles(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#options;
    const refused = new Map<string, string>();
    for (;;) {
      await clock.sleep(this.#options.filesPollMs ?? filesPollMs, signal);
      for (const { tool, wanted } of this.#tools.values()) {
        if (!tool.packages?.lockfile && !tool.packages?.requirementsFile) continue;
        const refusal = await this.refuse(tool, signal);
        const current = this.#tools.get(tool.name)?.wanted;
        if (current === undefined || current === wanted) {
          const reason = refusal !== undefined && !refusal.keepsServed ? refusal.reason : "";
          if (reason !== "" && refused.get(tool.name) !== reason)
            logEvent(log, "packages.files_unusable", { tool: tool.name, reason });
          refused.set(tool.name, reason);
        }
      }
    }
  }

  #planOptions(): PlanOptions {
    const { toolsDirs, interpreterOf, builder } = this.#options;
    const fingerprint = (runtime: Runtime) => builder.registry.fingerprint(runtime);
    return { toolsDirs, interpreterOf, fingerprint };
  }

  /** Runs until the disposal. Failures are logged where they happen. */
  #run(work: (signal: AbortSignal) => Promise<void>, stop?: AbortSignal): void {
    const closing = this.#closing.signal;
    const signal = stop === undefined ? closing : AbortSignal.any([closing, stop]);
    const running: Promise<void> = work(signal)
      .catch(() => undefined)
      .finally(() => this.#running.delete(running));
    this.#running.add(running);
  }
}

/** The message of an error with that of its cause, which names paths. */
function reasonOf(error: EnvironmentError): string {
  const { cause } = error;
  return cause instanceof Error ? `${error.message}: ${cause.message}` : error.message;
}

/** Equal for entries that want the same of the same interpreter. */
function identityOf({ runtime, interpreter, packages }: PackagedTool): string {
  return JSON.stringify([runtime, interpreter, packages]);
}
