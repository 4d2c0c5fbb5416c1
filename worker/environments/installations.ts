/**
 * Installations by key: looked for, started in the background, tried again, and removed when no
 * worker uses them.
 */
import { backoffDelays } from "../support/backoff.ts";
import type { Clock } from "../support/clock.ts";
import { Condition } from "../support/condition.ts";
import { Semaphore } from "../support/semaphore.ts";
import { type EventLog, logEvent } from "../telemetry/log-event.ts";
import type { BuilderParts } from "./build/python.ts";
import { buildEnvironment } from "./builder.ts";
import { EnvironmentError, type EnvironmentPlan, type Installation } from "./environments.ts";
import type { EnvironmentStore, StoredEnvironment } from "./store.ts";
import { Upkeep } from "./upkeep.ts";

/** Installations that run at once. */
export const maxInstallations = 4;
/** Milliseconds between two attempts of a failed installation. */
const retryMs = { baseMs: 20_000, capMs: 600_000 };

/**
 * How packages are installed that are not there: in the background until it succeeds; once, before
 * a tool is admitted, as by commands that end; or not at all.
 */
export type InstallMode = "background" | "wait" | "never";

/** What they are made with. */
export interface InstallationsOptions {
  readonly builder: BuilderParts;
  /** Opened when the first plan needs it. */
  openStore(): Promise<EnvironmentStore>;
  readonly keepMs: number;
  readonly maxBytes: number;
  readonly installs: InstallMode;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: EventLog<"info" | "warn">;
  /** Replaces the constant of this file. */
  readonly retryMs?: { readonly baseMs: number; readonly capMs: number } | undefined;
}

/** What installations ask of their owner. */
export interface InstallationsOwner {
  /** Names of the tools that want an environment, for the log. */
  toolsOf(key: string): readonly string[];
  /** Keys that sandboxes may mount. */
  inForce(): Iterable<string>;
}

/** How many environments are in which state. */
export interface PackageCounts {
  readonly ready: number;
  readonly installing: number;
  readonly failed: number;
}

export type InstallationState =
  | { readonly kind: "installing" }
  | { readonly kind: "ready"; readonly installation: Installation }
  | { readonly kind: "failed"; readonly reason: string; readonly publicReason: string };

/** An environment that tools want. */
export interface WantedEnvironment {
  readonly key: string;
  readonly state: InstallationState;
  /** Resolves when it is known whether the environment is there already. */
  readonly looked: Promise<void>;
  /** Resolves after the first attempt to install it. */
  readonly attempted: Promise<void>;
}

class Wanted implements WantedEnvironment {
  readonly plan: EnvironmentPlan;
  readonly stop = new AbortController();
  readonly look = Promise.withResolvers<void>();
  readonly attempt = Promise.withResolvers<void>();
  state: InstallationState = { kind: "installing" };

  constructor(plan: EnvironmentPlan) {
    this.plan = plan;
  }

  get key(): string {
    return this.plan.key;
  }

  get looked(): Promise<void> {
    return this.look.promise;
  }

  get attempted(): Promise<void> {
    return this.attempt.promise;
  }
}

/** The owner disposes it after the last sandbox. */
export class Installations implements AsyncDisposable {
  readonly #options: InstallationsOptions;
  readonly #owner: InstallationsOwner;
  /** Each waits for a tool of the manifest, which has a bounded number of them. */
  readonly #permits = new Semaphore({ capacity: maxInstallations, maxWaiting: Infinity });
  readonly #closing = new AbortController();
  readonly #change = new Condition();
  readonly #wanted = new Map<string, Wanted>();
  readonly #running = new Set<Promise<void>>();
  #store: Promise<EnvironmentStore> | undefined;

  constructor(options: InstallationsOptions, owner: InstallationsOwner) {
    this.#options = options;
    this.#owner = owner;
  }

  /** Resolves at the next end of an attempt, or when the owner wants to be asked again. */
  get changed(): Promise<void> {
    return this.#change.changed;
  }

  /** Resolves `changed`. */
  askAgain(): void {
    this.#change.notify();
  }

  /** Undefined while nothing is wanted. */
  get counts(): PackageCounts | undefined {
    if (this.#wanted.size === 0) return undefined;
    const counts = { ready: 0, installing: 0, failed: 0 };
    for (const { state } of this.#wanted.values()) counts[state.kind]++;
    return counts;
  }

  /** The environment of a plan, which is looked for and installed in the background. */
  want(plan: EnvironmentPlan): WantedEnvironment {
    const known = this.#wanted.get(plan.key);
    if (known !== undefined) return known;
    const wanted = new Wanted(plan);
    this.#wanted.set(plan.key, wanted);
    this.#run((signal) => this.#provide(wanted, signal), wanted.stop.signal);
    return wanted;
  }

  /** Forgets all others, and ends their attempts. */
  keep(keys: ReadonlySet<string>): void {
    for (const [key, { stop }] of this.#wanted) {
      if (keys.has(key)) continue;
      this.#wanted.delete(key);
      stop.abort(new Error("no tool needs these packages"));
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(new Error("the worker is closing"));
    await Promise.allSettled(this.#running);
    const store = await this.#store?.catch(() => undefined);
    await store?.[Symbol.asyncDispose]();
  }

  /** Tries, in the background until it succeeds. Callers that wait also go on when that ends. */
  async #provide(wanted: Wanted, signal: AbortSignal): Promise<void> {
    const { clock, random, installs } = this.#options;
    try {
      for (const ms of backoffDelays({ ...(this.#options.retryMs ?? retryMs), random })) {
        const delayMs = installs === "background" ? Math.round(ms) : undefined;
        wanted.state = await this.#attempt(wanted, delayMs, signal);
        wanted.look.resolve();
        wanted.attempt.resolve();
        this.#change.notify();
        if (wanted.state.kind === "ready" || delayMs === undefined) return;
        await clock.sleep(delayMs, signal);
      }
    } finally {
      wanted.look.resolve();
      wanted.attempt.resolve();
    }
  }

  /** One attempt; of a failure the log has more than the state. */
  async #attempt(
    wanted: Wanted,
    delayMs: number | undefined,
    signal: AbortSignal,
  ): Promise<InstallationState> {
    try {
      const store = await this.#openStore();
      const present = await store.use(wanted.key);
      if (present === undefined && this.#options.installs === "never") return notInstalled;
      if (present === undefined) wanted.look.resolve();
      const installation = present ?? (await this.#install(wanted.plan, store, signal));
      // It may be of a worker that allows others. Names in other plans are checked before.
      if (wanted.plan.kind === "uv-lock")
        this.#options.builder.requireAllowed(installation.facts.names);
      return { kind: "ready", installation };
    } catch (error) {
      signal.throwIfAborted();
      return this.#failed(wanted.plan, error, delayMs);
    }
  }

  async #install(
    plan: EnvironmentPlan,
    store: EnvironmentStore,
    signal: AbortSignal,
  ): Promise<StoredEnvironment> {
    const { clock, log, builder: parts } = this.#options;
    const { key, runtime, title: packages } = plan;
    using _permit = await this.#permits.acquire(signal);
    const onBegin = (): void => {
      const tools = this.#owner.toolsOf(key);
      logEvent(log, "packages.installing", { key, runtime, packages, tools });
    };
    const installed = await buildEnvironment(plan, { store, parts, clock, onBegin }, signal);
    const { installer, sizeBytes, tookMs } = installed.facts;
    const tools = this.#owner.toolsOf(key);
    logEvent(log, "packages.installed", { key, packages, tools, installer, sizeBytes, tookMs });
    return installed;
  }

  #failed(plan: EnvironmentPlan, error: unknown, delayMs?: number): InstallationState {
    const { key, title } = plan;
    const known = error instanceof EnvironmentError ? error : undefined;
    const reason = known?.explained ?? "the build failed";
    logEvent(this.#options.log, "packages.failed", {
      ...{ key, packages: title, tools: this.#owner.toolsOf(key), reason },
      ...{ output: known?.output, retryMs: delayMs },
      err: known === undefined ? error : known.cause,
    });
    return {
      kind: "failed",
      reason: `its packages could not be installed: ${reason}`,
      publicReason: known?.publicReason ?? "its packages could not be installed",
    };
  }

  #openStore(): Promise<EnvironmentStore> {
    const { openStore } = this.#options;
    this.#store ??= openStore().then((store) => {
      if (store.isReadOnly) return store;
      const inForce = (): Iterable<string> => [...this.#wanted.keys(), ...this.#owner.inForce()];
      const upkeep = new Upkeep({ ...this.#options, store, inForce });
      this.#run((signal) => upkeep.run(signal));
      return store;
    });
    // It may be mended while the worker runs.
    this.#store.catch(() => (this.#store = undefined));
    return this.#store;
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

const notInstalled: InstallationState = {
  kind: "failed",
  reason: "its packages are not installed yet",
  publicReason: "its packages are not installed yet",
};
