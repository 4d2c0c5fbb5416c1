/**
 * Opens the environments of a worker from its configuration.
 */
import type { Runtime, ToolEntry } from "../manifest/manifest.ts";
import type { SandboxBackend } from "../sandbox/sandbox.ts";
import type { Clock } from "../support/clock.ts";
import type { NewId } from "../support/ids.ts";
import type { EventLog } from "../telemetry/log-event.ts";
import { AllowedPackages } from "./allow.ts";
import { PackageCache } from "./build/cache.ts";
import { buildProfile, type BuildLimits } from "./build/profile.ts";
import type { Interpreter, PackagePolicy } from "./environments.ts";
import { type RegistryOptions, RegistrySettings } from "./registry/settings.ts";
import type { InstallMode } from "./installations.ts";
import { EnvironmentStore } from "./store.ts";
import { ToolEnvironments, type ToolEnvironmentsOptions } from "./tool-environments.ts";

/** What the operator says of packages. */
export interface PackageSettings extends BuildLimits, Omit<RegistryOptions, "environment"> {
  readonly policy: PackagePolicy;
  readonly allowed: readonly string[] | undefined;
  readonly directory: string;
  readonly keepMs: number;
  readonly maxBytes: number;
  /** Size of the installers' caches above which they are emptied; 0 for none. */
  readonly cacheMaxBytes: number;
  readonly uvBin: string | undefined;
}

/** What environments are opened with. */
export interface OpenOptions {
  readonly settings: PackageSettings;
  readonly toolsDirs: Readonly<Record<Runtime, string>>;
  readonly leaseToolset?: ToolEnvironmentsOptions["leaseToolset"];
  /** The worker's environment; installers see the variables of `registry/variables.ts`. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly backend: Pick<SandboxBackend, "acquire" | "share">;
  /** Host uid of sandboxes, or undefined for the worker's own. */
  readonly uid: number | undefined;
  interpreterOf(tool: ToolEntry): Promise<Interpreter>;
  readonly installs: InstallMode;
  readonly retryMs?: ToolEnvironmentsOptions["retryMs"];
  readonly filesPollMs?: ToolEnvironmentsOptions["filesPollMs"];
  readonly clock: Clock;
  readonly newId: NewId;
  readonly log: EventLog<"info" | "warn">;
}

/** The environments of a worker; the caller owns them. Opens nothing until a tool needs one. */
export function openToolEnvironments(options: OpenOptions): ToolEnvironments {
  const { settings, environment, backend, clock, uid, newId } = options;
  const { timeoutSeconds, directory, cacheMaxBytes: maxBytes } = settings;
  const allowed = new AllowedPackages(settings.allowed);
  return new ToolEnvironments({
    ...options,
    ...settings,
    allowed,
    random: Math.random,
    openStore: () => EnvironmentStore.open({ directory, uid, newId }),
    builder: {
      cache: maxBytes === 0 ? undefined : new PackageCache({ ...options, directory, maxBytes }),
      requireAllowed: (names) => allowed.require("python", names),
      host: { backend, clock, timeoutSeconds, profile: buildProfile(settings) },
      registry: new RegistrySettings({ ...settings, environment }),
      installers: { searchPath: environment["PATH"] ?? "", uvBin: settings.uvBin },
    },
  });
}
