/**
 * The environment becomes a typed configuration, once (design document, section 12).
 */
import type { z } from "zod";
import type { CacheConfig, StoreConfig } from "../artifacts/open.ts";
import { type ScopeConfig, artifactKey } from "../artifacts/scope.ts";
import type { AuditConfig } from "../telemetry/audit/open.ts";
import type { TracingConfig } from "../telemetry/tracing/open.ts";
import { auditConfig, auditProblems } from "./audit-config.ts";
import { cacheConfig, storeConfig, storeProblems } from "./artifact-config.ts";
import { brokerConfig, brokerProblems } from "./broker-config.ts";
import type { BrokerConfig } from "../broker/open.ts";
import type { ToolLogs } from "../invocation/steps/output-log.ts";
import type { ArtifactLimits } from "../invocation/steps/transfers.ts";
import type { CheckName } from "../sandbox/host-check.ts";
import type { CredentialSource } from "../protocol/credential.ts";
import { type Network, toNetwork } from "../protocol/network-rules.ts";
import { defaultQueue } from "../protocol/queue-names.ts";
import { builtInProfiles } from "../sandbox/profile.ts";
import type { logFormats, logLevels } from "../telemetry/logger.ts";
import { type ConsoleConfig, consoleConfig, consoleProblems } from "./servers/console-config.ts";
import { type RuntimeConfig, runtimeConfig, runtimeProblems } from "./servers/runtime-config.ts";
import { type PackageConfig, packageConfig } from "./package-config.ts";
import { readSecretFiles } from "./secret-files.ts";
import { tracingConfig, tracingProblems } from "./tracing-config.ts";
import { type Environment, aliasProblems, spelledIn, underOwnNames } from "./variable-aliases.ts";
import { misspeltVariables } from "./variable-names.ts";
import { type describedBy, factsAbout, variables } from "./variables.ts";

export type { Environment };

const bytesPerKilobyte = 1024;
const bytesPerMegabyte = 1024 * 1024;

/** The worker's configuration. */
export interface Config {
  readonly namespace: string;
  readonly workerId: string;
  readonly broker: BrokerConfig;
  /** Workers of a group share its queues. */
  readonly group: string;
  /**
   * Queues of the group that the worker consumes, with the slots of each: calls that run at once.
   */
  readonly queues: ReadonlyMap<string, number>;
  readonly manifestPath: string;
  readonly toolsPythonDir: string;
  readonly toolsNodeDir: string;
  readonly toolsExecutableDir: string;
  /** What describes the tools where the manifest says nothing. */
  readonly describedBy: (typeof describedBy)[number];
  /** Whether the worker broadcasts the descriptions of its tools, and answers for them. */
  readonly isDiscoverable: boolean;
  /** Undefined without toolsets. */
  readonly toolsetsDir: string | undefined;
  readonly defaultTimeoutSeconds: number;
  /** Runs of a call that end their worker, at most. */
  readonly maxRuns: number;
  readonly sandbox: SandboxConfig;
  readonly packages: PackageConfig;
  readonly artifacts: ArtifactConfig;
  /** Undefined without an audit log. */
  readonly audit: AuditConfig | undefined;
  /** Undefined without a console. */
  readonly console: ConsoleConfig | undefined;
  /** Undefined without a served runtime. */
  readonly runtime: RuntimeConfig | undefined;
  /** Undefined without a collector of traces. */
  readonly tracing: TracingConfig | undefined;
  readonly toolLogs: ToolLogs;
  /** 0 is none. */
  readonly healthPort: number;
  /** Every interface when undefined. */
  readonly healthHost: string | undefined;
  readonly drainTimeoutSeconds: number;
  readonly logLevel: (typeof logLevels)[number];
  readonly logFormat: (typeof logFormats)[number];
}

/** How tools are run. */
export interface SandboxConfig {
  readonly bwrapBin: string;
  readonly runscBin: string;
  readonly ctrBin: string;
  readonly containerdAddress: string;
  readonly kataRuntime: string;
  readonly dockerSocket: string;
  readonly pythonBin: string;
  readonly nodeBin: string;
  /** Other interpreters that tools may name, by name. */
  readonly pythons: ReadonlyMap<string, string>;
  readonly downloadsPythons: boolean;
  readonly nodes: ReadonlyMap<string, string>;
  readonly workDir: string;
  /** Whether there is such a profile is known when the profiles file is read. */
  readonly defaultProfile: string;
  readonly profilesFile: string | undefined;
  /** Of `standard`. */
  readonly defaultNetwork: Network;
  /** What the network `host` stands for. */
  readonly hostNetwork: Network;
  readonly allowedMounts: readonly string[];
  readonly allowedDevices: readonly string[];
  /** Of values that the worker adds to requests. */
  readonly credentialSources: readonly CredentialSource[] | undefined;
  /** Whether profiles may ask for a backend that isolates nothing. */
  readonly allowUnsafe: boolean;
  /** Checks that the host has to hold for the worker to start. */
  readonly minimum: readonly CheckName[];
  /** The slots of all queues. */
  readonly maxConcurrent: number;
  readonly maxQueued: number;
  /** Calls that have lent their slots. */
  readonly maxSuspended: number;
  /** Memory of all sandboxes together that wait for calls; 0 is none that waits. */
  readonly maxWarmBytes: number;
  /** Host uid of sandboxes when the worker is root. */
  readonly uid: number;
  readonly minFreeDiskBytes: number;
}

/** Where artifacts are, and how much a call may move. */
export interface ArtifactConfig {
  readonly store: StoreConfig;
  /** In front of the store; undefined without one. */
  readonly cache: CacheConfig | undefined;
  readonly scope: ScopeConfig;
  readonly limits: ArtifactLimits;
}

/**
 * A configuration that cannot be used: one line per problem, with variable, value and what is
 * accepted.
 */
export class ConfigError extends Error {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join("\n"));
    this.name = "ConfigError";
    this.problems = problems;
  }
}

/**
 * Reads the whole configuration, with the files that hold secrets. An empty variable counts as
 * unset. Throws ConfigError with every problem at once.
 */
export function readConfig(environment: Environment): Config {
  const secrets = readSecretFiles(environment);
  const set = underOwnNames(secrets.environment);
  const parsed = variables.safeParse(set);
  const wrong = new Set(parsed.error?.issues.map(({ path }) => path[0]));
  if (!isKnownProfile(set)) wrong.add("SANDBOX_DEFAULT_PROFILE");
  if (!isUsableScope(set)) wrong.add("ARTIFACT_SCOPE_VALUE");
  const problems = [
    ...misspeltVariables(environment),
    ...secrets.problems,
    ...Array.from(wrong, (name) => problem(name, set, secrets.environment)),
    ...aliasProblems(secrets.environment),
    // What cannot be read may have said which broker.
    ...(secrets.problems.length > 0 ? [] : brokerProblems(set)),
    ...storeProblems(set),
    ...auditProblems(set),
    ...tracingProblems(set),
    ...consoleProblems(set),
    ...runtimeProblems(set),
  ];
  if (!parsed.success || problems.length > 0) throw new ConfigError(problems);
  const config = toConfig(parsed.data, set);
  if (config.sandbox.allowUnsafe && !isForDevelopment(config.broker)) {
    throw new ConfigError(["SANDBOX_ALLOW_UNSAFE: is for development, with a DevBroker"]);
  }
  return config;
}

/**
 * The configuration of sandboxes alone, for `str-worker doctor`: other variables may be wrong or
 * missing, and what would come of them has no meaning. Throws ConfigError.
 *
 * @param more further variables that count
 */
export function readSandboxConfig(environment: Environment, more: readonly string[] = []): Config {
  const names = ["LOG_LEVEL", "LOG_FORMAT", ...more];
  const own = Object.entries(environment).filter(
    ([name]) => name.startsWith("SANDBOX_") || names.includes(name),
  );
  // An address: sandboxes that are attacked would wait for the name servers.
  const nobody = { SAM_NAMESPACE: "doctor", DEV_BROKER_HOST: "127.0.0.1" };
  return readConfig({ ...Object.fromEntries(own), ...nobody });
}

/**
 * The configuration of manifest, tools, sandboxes and packages alone, for `str-worker --prepare`:
 * images are made where there is no broker. Throws ConfigError.
 */
export function readPackagesConfig(environment: Environment): Config {
  const own = Object.entries(environment).filter(([name]) =>
    /^(?:MANIFEST_|TOOLS_|TOOLSETS_|SANDBOX_|PACKAGE_|WORKER_QUEUES$|LOG_)/.test(name),
  );
  const nobody = { SAM_NAMESPACE: "prepare", DEV_BROKER_HOST: "nobody" };
  return readConfig({ ...Object.fromEntries(own), ...nobody });
}

/** Whether nobody but developers can call tools through this broker. */
function isForDevelopment({ kind }: { readonly kind: string }): boolean {
  return kind === "dev";
}

/** Whether the default profile can exist: those of a file are known when it is read. */
function isKnownProfile(set: Environment): boolean {
  const name = set["SANDBOX_DEFAULT_PROFILE"];
  if (name === undefined || set["SANDBOX_PROFILES_FILE"] !== undefined) return true;
  return builtInProfiles.has(name);
}

function isUsableScope(set: Environment): boolean {
  const value = set["ARTIFACT_SCOPE_VALUE"];
  return value === undefined ? set["ARTIFACT_SCOPE"] !== "custom" : isUsableRoot(value);
}

/** Whether artifacts can be kept below a scope of this name. */
function isUsableRoot(root: string): boolean {
  try {
    artifactKey({ root, userId: "user", sessionId: "session" }, "file");
    return true;
  } catch {
    return false;
  }
}

/** `NAME: "value" is not accepted; accepted: …`, without the value of what may hold a secret. */
function problem(name: PropertyKey | undefined, set: Environment, given: Environment): string {
  const key = String(name) as keyof typeof variables.shape;
  const { accepted, isSecret } = factsAbout(key);
  const value = set[key];
  const shown = isSecret ? "what is set" : JSON.stringify(value);
  const found = value === undefined ? "is not set" : `${shown} is not accepted`;
  return `${spelledIn(given, key)}: ${found}; accepted: ${accepted}`;
}

function toConfig(values: z.infer<typeof variables>, set: Environment): Config {
  const queues = values.WORKER_QUEUES ?? new Map([[defaultQueue, values.SANDBOX_MAX_CONCURRENT]]);
  const maxConcurrent = sum(queues.values());
  const minFreeDiskBytes = values.SANDBOX_MIN_FREE_DISK_MB * bytesPerMegabyte;
  return {
    namespace: values.SAM_NAMESPACE,
    workerId: values.SAM_WORKER_ID,
    broker: brokerConfig(values),
    group: values.WORKER_GROUP,
    queues,
    manifestPath: values.MANIFEST_PATH,
    toolsPythonDir: values.TOOLS_PYTHON_DIR,
    toolsNodeDir: values.TOOLS_NODE_DIR,
    toolsExecutableDir: values.TOOLS_EXECUTABLE_DIR,
    describedBy: values.TOOLS_DESCRIBED_BY,
    isDiscoverable: values.TOOLS_DISCOVERY === "1",
    toolsetsDir: values.TOOLSETS_DIR,
    defaultTimeoutSeconds: values.DEFAULT_TIMEOUT_SECONDS,
    maxRuns: values.BROKER_MAX_RUNS,
    sandbox: {
      bwrapBin: values.SANDBOX_BWRAP_BIN,
      runscBin: values.SANDBOX_RUNSC_BIN,
      ctrBin: values.SANDBOX_CTR_BIN,
      containerdAddress: values.SANDBOX_CONTAINERD_ADDRESS,
      kataRuntime: values.SANDBOX_KATA_RUNTIME,
      dockerSocket: values.DOCKER_SOCKET,
      pythonBin: values.SANDBOX_PYTHON_BIN,
      nodeBin: values.SANDBOX_NODE_BIN ?? process.execPath,
      pythons: values.SANDBOX_PYTHONS ?? new Map(),
      downloadsPythons: values.SANDBOX_PYTHON_DOWNLOADS === "1",
      nodes: values.SANDBOX_NODES ?? new Map(),
      workDir: values.SANDBOX_WORK_DIR,
      defaultProfile: values.SANDBOX_DEFAULT_PROFILE,
      profilesFile: values.SANDBOX_PROFILES_FILE,
      defaultNetwork: toNetwork(values.SANDBOX_DEFAULT_NETWORK),
      hostNetwork: toNetwork(values.SANDBOX_HOST_NETWORK),
      allowedMounts: values.SANDBOX_ALLOWED_MOUNTS ?? [],
      allowedDevices: values.SANDBOX_ALLOWED_DEVICES ?? [],
      credentialSources: values.CREDENTIAL_SOURCES,
      allowUnsafe: values.SANDBOX_ALLOW_UNSAFE === "1",
      minimum: values.SANDBOX_MINIMUM,
      maxConcurrent,
      maxQueued: values.SANDBOX_MAX_QUEUED,
      maxSuspended: values.SANDBOX_MAX_SUSPENDED ?? suspendedPerSlot * maxConcurrent,
      maxWarmBytes: values.WARM_MAX_MEMORY_MB * bytesPerMegabyte,
      uid: values.SANDBOX_UID,
      minFreeDiskBytes,
    },
    packages: packageConfig(values),
    artifacts: {
      store: storeConfig(values),
      cache: cacheConfig(values, minFreeDiskBytes),
      scope: scopeConfig(values),
      limits: {
        maxBytes: values.ARTIFACT_MAX_BYTES,
        callMaxBytes: values.ARTIFACT_CALL_MAX_BYTES,
        maxOutputs: values.ARTIFACT_MAX_OUTPUTS,
      },
    },
    audit: auditConfig(values),
    console: consoleConfig(values),
    runtime: runtimeConfig(values),
    tracing: tracingConfig(values, set),
    toolLogs: { to: values.TOOL_LOGS, maxBytes: values.TOOL_LOGS_MAX_KB * bytesPerKilobyte },
    healthPort: values.HEALTH_PORT,
    healthHost: values.HEALTH_HOST,
    drainTimeoutSeconds: values.DRAIN_TIMEOUT_SECONDS,
    logLevel: values.LOG_LEVEL,
    logFormat: values.LOG_FORMAT,
  };
}

/** Calls that lend their slots, for each slot. */
const suspendedPerSlot = 4;

function sum(counts: Iterable<number>): number {
  let total = 0;
  for (const count of counts) total += count;
  return total;
}

function scopeConfig(values: z.infer<typeof variables>): ScopeConfig {
  switch (values.ARTIFACT_SCOPE) {
    case "namespace":
      return { kind: "namespace", namespace: values.SAM_NAMESPACE };
    case "app":
      return { kind: "app" };
    case "custom":
      return { kind: "custom", value: values.ARTIFACT_SCOPE_VALUE ?? "" };
  }
}
