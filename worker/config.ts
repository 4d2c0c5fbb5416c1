/**
 * The environment becomes a typed configuration, once (design document, section 12).
 */
import { z } from "zod";
import type { StoreConfig } from "./artifacts/open.ts";
import type { ScopeConfig } from "./artifacts/scope.ts";
import type { BrokerConfig } from "./broker/open.ts";
import { maxTimeoutSeconds } from "./protocol/limits.ts";
import { namespaceProblem } from "./protocol/topics.ts";
import { builtInProfiles } from "./sandbox/profile.ts";
import { logLevels } from "./telemetry/logger.ts";

/** An environment, as `process.env` is one. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** What documents and errors say of a variable. */
interface VariableFacts {
  /** What is accepted. */
  readonly accepted: string;
  readonly description: string;
}

const text = z.string();
const absolutePath = z.string().startsWith("/");
const wholeNumber = (min: number, max: number) =>
  z.string().regex(/^\d+$/).transform(Number).pipe(z.int().min(min).max(max));

const facts = z.registry<VariableFacts>();

function required<T extends z.ZodType>(schema: T, accepted: string, description: string) {
  facts.add(schema, { accepted, description });
  return schema;
}

function optional<T extends z.ZodType>(schema: T, accepted: string, description: string) {
  return required(schema.optional(), accepted, description);
}

/** @param text the default, as the environment would spell it */
function withDefault<T extends z.ZodType<unknown, string>>(
  schema: T,
  accepted: string,
  text: z.input<T>,
  description: string,
) {
  return required(schema.prefault(text as never), accepted, description);
}

const port = wholeNumber(1, 65_535);
const profileNames = [...builtInProfiles.keys()];
const maxDelayMs = 3_600_000;
const maxCount = 10_000;
const bytesPerMegabyte = 1024 * 1024;

/** Every variable the worker reads, in the order of the documentation. */
export const variables = z.object({
  SAM_NAMESPACE: required(
    text.refine((value) => namespaceProblem(value) === undefined),
    "the agents' namespace, spelled exactly as they spell it: letters, digits, `.`, `_`, `-` and `/`",
    "Namespace for topics and artifacts. Required.",
  ),
  SAM_WORKER_ID: withDefault(
    text.regex(/^[A-Za-z0-9._-]{1,100}$/),
    "1 to 100 letters, digits, `.`, `_` or `-`",
    "sandbox-worker-001",
    "Identifier of this worker.",
  ),
  DEV_BROKER_HOST: required(
    text.min(1),
    "host name or address of a DevBroker",
    "Host of the DevBroker. Required: it is the broker this version connects to.",
  ),
  DEV_BROKER_PORT: withDefault(port, "a port, 1 to 65535", "55555", "Port of the DevBroker."),
  CONNECT_RETRIES: withDefault(
    wholeNumber(0, maxCount),
    `a whole number, 0 to ${maxCount}`,
    "0",
    "Connection attempts before the worker gives up; 0 is for ever.",
  ),
  CONNECT_RETRY_DELAY_MS: withDefault(
    wholeNumber(1, maxDelayMs),
    `milliseconds, 1 to ${maxDelayMs}`,
    "3000",
    "Longest delay between two connection attempts.",
  ),
  MANIFEST_PATH: withDefault(
    absolutePath,
    "an absolute path",
    "/tools/manifest.yaml",
    "The tool manifest.",
  ),
  TOOLS_PYTHON_DIR: withDefault(
    absolutePath,
    "an absolute path",
    "/tools/python",
    "Directory with the Python modules of the tools.",
  ),
  DEFAULT_TIMEOUT_SECONDS: withDefault(
    wholeNumber(1, maxTimeoutSeconds),
    `seconds, 1 to ${maxTimeoutSeconds}`,
    "300",
    "Time limit of a call when neither the manifest nor the request has one.",
  ),
  SANDBOX_BWRAP_BIN: withDefault(
    absolutePath,
    "an absolute path",
    "/usr/bin/bwrap",
    "The bubblewrap program.",
  ),
  SANDBOX_PYTHON_BIN: withDefault(
    absolutePath,
    "an absolute path",
    "/usr/bin/python3",
    "The Python interpreter for tools.",
  ),
  SANDBOX_WORK_DIR: withDefault(
    absolutePath,
    "an absolute path",
    "/sandbox/work",
    "Directory for the work directories of calls.",
  ),
  SANDBOX_DEFAULT_PROFILE: withDefault(
    z.enum(profileNames),
    `one of ${profileNames.join(", ")}`,
    "standard",
    "Profile of a call when neither the manifest nor the request names one.",
  ),
  SANDBOX_MAX_CONCURRENT: withDefault(
    wholeNumber(1, 1_000),
    "a whole number, 1 to 1000",
    "4",
    "Calls that run at once.",
  ),
  SANDBOX_MAX_QUEUED: withDefault(
    wholeNumber(0, maxCount),
    `a whole number, 0 to ${maxCount}`,
    "100",
    "Calls that wait for their turn; further ones are answered RESOURCE_EXHAUSTED.",
  ),
  SANDBOX_UID: withDefault(
    wholeNumber(1, 2 ** 31 - 1),
    "a user id above 0",
    "60001",
    "Host user and group id of sandboxes when the worker runs as root; unused otherwise.",
  ),
  SANDBOX_MIN_FREE_DISK_MB: withDefault(
    wholeNumber(0, 2 ** 31),
    "megabytes",
    "500",
    "Free space that `SANDBOX_WORK_DIR` must have for a call to start.",
  ),
  ARTIFACT_SERVICE_TYPE: withDefault(
    z.enum(["memory", "filesystem"]),
    "one of memory, filesystem",
    "memory",
    "Artifact store. `memory` lives in the worker: no agent sees what is saved there.",
  ),
  ARTIFACT_BASE_PATH: withDefault(
    absolutePath,
    "an absolute path",
    "/sam/artifacts",
    "Directory of the filesystem store.",
  ),
  ARTIFACT_SCOPE: withDefault(
    z.enum(["namespace", "app", "custom"]),
    "one of namespace, app, custom",
    "namespace",
    "Who shares artifacts: everybody in the namespace, each agent for itself, or `ARTIFACT_SCOPE_VALUE`.",
  ),
  ARTIFACT_SCOPE_VALUE: optional(
    text.min(1),
    "a name",
    "The scope's name with `ARTIFACT_SCOPE=custom`, required then.",
  ),
  HEALTH_PORT: withDefault(
    wholeNumber(0, 65_535),
    "a port, 1 to 65535, or 0 for none",
    "8081",
    "Port of `/livez` and `/readyz`.",
  ),
  DRAIN_TIMEOUT_SECONDS: withDefault(
    wholeNumber(0, maxTimeoutSeconds),
    `seconds, 0 to ${maxTimeoutSeconds}`,
    "30",
    "What running calls get to finish after SIGTERM.",
  ),
  LOG_LEVEL: withDefault(
    z.enum(logLevels),
    `one of ${logLevels.join(", ")}`,
    "info",
    "Least level that is logged.",
  ),
});

/** The worker's configuration. */
export interface Config {
  readonly namespace: string;
  readonly workerId: string;
  readonly broker: BrokerConfig;
  readonly manifestPath: string;
  readonly toolsPythonDir: string;
  readonly defaultTimeoutSeconds: number;
  readonly sandbox: SandboxConfig;
  readonly artifacts: ArtifactConfig;
  /** 0 is none. */
  readonly healthPort: number;
  readonly drainTimeoutSeconds: number;
  readonly logLevel: (typeof logLevels)[number];
}

/** How tools are run. */
export interface SandboxConfig {
  readonly bwrapBin: string;
  readonly pythonBin: string;
  readonly workDir: string;
  readonly defaultProfile: string;
  readonly maxConcurrent: number;
  readonly maxQueued: number;
  /** Host uid of sandboxes when the worker is root. */
  readonly uid: number;
  readonly minFreeDiskBytes: number;
}

/** Where artifacts are. */
export interface ArtifactConfig {
  readonly store: StoreConfig;
  readonly scope: ScopeConfig;
}

/** A configuration that cannot be used: one line per problem, with variable, value and what is accepted. */
export class ConfigError extends Error {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join("\n"));
    this.name = "ConfigError";
    this.problems = problems;
  }
}

/** Reads the whole configuration. An empty variable counts as unset. Throws ConfigError with every problem at once. */
export function readConfig(environment: Environment): Config {
  const set = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ""));
  const parsed = variables.safeParse(set);
  const problems = parsed.success
    ? []
    : [...new Set(parsed.error.issues.map(({ path }) => problem(path[0], set)))];
  if (set["ARTIFACT_SCOPE"] === "custom" && set["ARTIFACT_SCOPE_VALUE"] === undefined) {
    problems.push(problem("ARTIFACT_SCOPE_VALUE", set));
  }
  if (!parsed.success || problems.length > 0) throw new ConfigError(problems);
  return toConfig(parsed.data);
}

/** `NAME: "value" is not accepted; accepted: …`. No variable that can be wrong holds a secret. */
function problem(name: PropertyKey | undefined, environment: Environment): string {
  const key = String(name) as keyof typeof variables.shape;
  const value = environment[key];
  const found = value === undefined ? "is not set" : `${JSON.stringify(value)} is not accepted`;
  return `${key}: ${found}; accepted: ${facts.get(variables.shape[key])?.accepted ?? ""}`;
}

function toConfig(values: z.infer<typeof variables>): Config {
  return {
    namespace: values.SAM_NAMESPACE,
    workerId: values.SAM_WORKER_ID,
    broker: {
      kind: "dev",
      host: values.DEV_BROKER_HOST,
      port: values.DEV_BROKER_PORT,
      connectRetries: values.CONNECT_RETRIES,
      connectRetryDelayMs: values.CONNECT_RETRY_DELAY_MS,
    },
    manifestPath: values.MANIFEST_PATH,
    toolsPythonDir: values.TOOLS_PYTHON_DIR,
    defaultTimeoutSeconds: values.DEFAULT_TIMEOUT_SECONDS,
    sandbox: {
      bwrapBin: values.SANDBOX_BWRAP_BIN,
      pythonBin: values.SANDBOX_PYTHON_BIN,
      workDir: values.SANDBOX_WORK_DIR,
      defaultProfile: values.SANDBOX_DEFAULT_PROFILE,
      maxConcurrent: values.SANDBOX_MAX_CONCURRENT,
      maxQueued: values.SANDBOX_MAX_QUEUED,
      uid: values.SANDBOX_UID,
      minFreeDiskBytes: values.SANDBOX_MIN_FREE_DISK_MB * bytesPerMegabyte,
    },
    artifacts: {
      store:
        values.ARTIFACT_SERVICE_TYPE === "memory"
          ? { kind: "memory" }
          : { kind: "filesystem", basePath: values.ARTIFACT_BASE_PATH },
      scope: scopeConfig(values),
    },
    healthPort: values.HEALTH_PORT,
    drainTimeoutSeconds: values.DRAIN_TIMEOUT_SECONDS,
    logLevel: values.LOG_LEVEL,
  };
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

/** One row per variable for documents: name, default as the environment spells it, what is accepted, what it means. */
export function describeVariables(): readonly VariableDescription[] {
  return Object.entries(variables.shape).map(([name, schema]) => {
    const { accepted, description } = facts.get(schema) ?? { accepted: "", description: "" };
    const defaultText =
      schema instanceof z.ZodPrefault ? String(schema.def.defaultValue) : undefined;
    return { name, defaultText, accepted, description };
  });
}

/** A row of the configuration table. */
export interface VariableDescription extends VariableFacts {
  readonly name: string;
  /** Undefined when there is no default. */
  readonly defaultText: string | undefined;
}
