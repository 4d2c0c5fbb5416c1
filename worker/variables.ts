/**
 * The environment variables that the worker reads: how each is spelled, what is accepted, what it means.
 */
import { z } from "zod";
import { maxTimeoutSeconds } from "./protocol/limits.ts";
import { entryNameSchema } from "./protocol/operator-fields.ts";
import { namespaceProblem } from "./protocol/topics.ts";
import { checkNames, defaultMinimum } from "./sandbox/host-check.ts";
import { builtInProfiles } from "./sandbox/profile.ts";
import { logLevels } from "./telemetry/logger.ts";

/** What documents and errors say of a variable. */
interface VariableFacts {
  /** What is accepted. */
  readonly accepted: string;
  readonly description: string;
}

const text = z.string();
const absolutePath = z.string().startsWith("/");
const absolutePaths = z
  .string()
  .regex(/^\/[^:]*(?::\/[^:]*)*$/)
  .transform((paths) => paths.split(":"));
const checkList = z
  .string()
  .transform((names) => names.split(",").map((name) => name.trim()))
  .pipe(z.array(z.enum(checkNames)));
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
  TOOLS_NODE_DIR: withDefault(
    absolutePath,
    "an absolute path",
    "/tools/node",
    "Directory with the JavaScript and TypeScript modules of the tools.",
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
  SANDBOX_NODE_BIN: optional(
    absolutePath,
    "an absolute path",
    "The Node program, version 24 or later, for tools. Unset: the one that runs the worker.",
  ),
  SANDBOX_WORK_DIR: withDefault(
    absolutePath,
    "an absolute path",
    "/sandbox/work",
    "Directory for the work directories of calls.",
  ),
  SANDBOX_DEFAULT_PROFILE: withDefault(
    entryNameSchema,
    `one of ${profileNames.join(", ")}, or a profile of \`SANDBOX_PROFILES_FILE\``,
    "standard",
    "Profile of a call when the manifest names none; a request can only tighten it.",
  ),
  SANDBOX_PROFILES_FILE: optional(
    absolutePath,
    "an absolute path",
    "File with profiles of your own. Unset: the built-in ones only.",
  ),
  SANDBOX_ALLOWED_MOUNTS: optional(
    absolutePaths,
    "absolute paths with `:` between them",
    "Files and directories of the host that tools may have mounted, with what lies below them. Unset: none.",
  ),
  SANDBOX_ALLOWED_DEVICES: optional(
    absolutePaths,
    "absolute paths with `:` between them",
    "Device files of the host, or directories of such, that tools may use. Unset: none.",
  ),
  SANDBOX_ALLOW_UNSAFE: withDefault(
    z.enum(["0", "1"]),
    "0 or 1",
    "0",
    "Set to 1, it allows own profiles with the backend `host`, which isolates nothing. For development, with a DevBroker only.",
  ),
  SANDBOX_MINIMUM: withDefault(
    checkList,
    `one or more of ${checkNames.join(", ")}, with \`,\` between them`,
    defaultMinimum.join(","),
    "Checks of `str-worker doctor` that this host has to hold; below it the worker does not start.",
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
  WARM_MAX_MEMORY_MB: withDefault(
    wholeNumber(0, 2 ** 31),
    "megabytes",
    "512",
    "Memory that sandboxes which wait for calls may take together; 0 for none that wait.",
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

/** What is accepted for a variable, as errors say it. */
export function acceptedBy(name: keyof typeof variables.shape): string {
  return facts.get(variables.shape[name])?.accepted ?? "";
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
