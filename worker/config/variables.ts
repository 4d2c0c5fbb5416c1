/**
 * The environment variables that the worker reads: how each is spelled, what is accepted, what it
 * means.
 */
import { z } from "zod";
import { artifactVariables } from "./artifact-variables.ts";
import { auditVariables } from "./audit-config.ts";
import { brokerVariables } from "./broker-variables.ts";
import { consoleVariables } from "./servers/console-config.ts";
import { runtimeVariables } from "./servers/runtime-config.ts";
import { packageVariables } from "./package-config.ts";
import { toolLogDestinations } from "../invocation/steps/output-log.ts";
import { maxTimeoutSeconds } from "../protocol/limits.ts";
import { entryNameSchema } from "../protocol/operator-fields.ts";
import { defaultGroup, queuePattern } from "../protocol/queue-names.ts";
import { namespaceProblem } from "../protocol/topics.ts";
import { checkNames, defaultMinimum } from "../sandbox/host-check.ts";
import { builtInProfiles } from "../sandbox/profile.ts";
import { logFormats, logLevels } from "../telemetry/logger.ts";
import { tracingVariables } from "./tracing-config.ts";
import {
  type VariableFacts,
  absolutePath,
  absolutePaths,
  credentialSources,
  defaultOf,
  factsOf,
  maxCount,
  namedPaths,
  optional,
  required,
  text,
  wholeNumber,
  withDefault,
} from "./variable-kinds.ts";

/** What describes tools. */
export const describedBy = ["code", "manifest"] as const;

/** Networks that tools have where nothing says which. */
const wideNetworks = ["public", "host"] as const;

/** What a sandbox keeps of a stream (`maxOutputBytes`). */
const maxToolLogKilobytes = 64;
/** Calls of one queue that run at once, at most. */
const maxSlots = 1_000;

const checkList = z
  .string()
  .transform((names) => names.split(",").map((name) => name.trim()))
  .pipe(z.array(z.enum(checkNames)));
/** `default:6,heavy:2`. */
const queueSlots = z
  .string()
  .transform((list) => list.split(",").map((item) => item.trim().split(":")))
  .pipe(z.array(z.tuple([z.string().regex(queuePattern), wholeNumber(1, maxSlots)])))
  .refine((queues) => new Set(queues.map(([queue]) => queue)).size === queues.length)
  .transform((queues): ReadonlyMap<string, number> => new Map(queues));
const profileNames = [...builtInProfiles.keys()];

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
  WORKER_GROUP: withDefault(
    text.regex(/^[A-Za-z0-9._-]{1,100}$/),
    "1 to 100 letters, digits, `.`, `_` or `-`",
    defaultGroup,
    "Workers of one group share its queues and have the same manifest. On Solace and RabbitMQ.",
  ),
  WORKER_QUEUES: optional(
    queueSlots,
    "`queue:slots` with `,` between them, queues of 1 to 50 letters, digits, `_` or `-`, slots 1 to 1000",
    "Queues of the group that this worker consumes, and the slots of each. A tool names its queue in the manifest. Unset: `default` with `SANDBOX_MAX_CONCURRENT` slots.",
  ),
  ...brokerVariables,
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
  TOOLS_EXECUTABLE_DIR: withDefault(
    absolutePath,
    "an absolute path",
    "/tools/executable",
    "Directory with the tools that are executables.",
  ),
  TOOLS_DESCRIBED_BY: withDefault(
    z.enum(describedBy),
    `one of ${describedBy.join(", ")}`,
    "code",
    "What describes the tools to agents, and for the check of arguments: the manifest alone, or their code where the manifest says nothing. The worker imports each tool for it, in a sandbox.",
  ),
  TOOLS_DISCOVERY: withDefault(
    z.enum(["0", "1"]),
    "0 or 1",
    "1",
    "With 1, agents can discover the tools: their descriptions are broadcast, and requests for them answered.",
  ),
  TOOLSETS_DIR: optional(
    absolutePath,
    "an absolute path",
    "Directory of [toolsets](toolsets.md): directories and ZIP files, each with a manifest of its own. Unset: none.",
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
  SANDBOX_RUNSC_BIN: withDefault(
    absolutePath,
    "an absolute path",
    "/usr/bin/runsc",
    "The `runsc` program of gVisor, for [profiles](profiles.md#backends) with the backend `gvisor`.",
  ),
  SANDBOX_CTR_BIN: withDefault(
    absolutePath,
    "an absolute path",
    "/usr/bin/ctr",
    "The client of containerd, for profiles with the backend `containerd` or `kata`.",
  ),
  SANDBOX_CONTAINERD_ADDRESS: withDefault(
    absolutePath,
    "an absolute path",
    "/run/containerd/containerd.sock",
    "The socket of containerd, for the same profiles.",
  ),
  SANDBOX_KATA_RUNTIME: withDefault(
    z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]*$/),
    "a name of letters, digits, `.`, `_` and `-`",
    "io.containerd.kata.v2",
    "The name that containerd has for the Kata runtime. The worker does not start where its containers have the host's kernel.",
  ),
  DOCKER_SOCKET: withDefault(
    absolutePath,
    "an absolute path",
    "/var/run/docker.sock",
    "Socket of the Docker Engine API, for profiles with the backend `docker`.",
  ),
  SANDBOX_PYTHON_BIN: withDefault(
    absolutePath,
    "an absolute path",
    "/usr/bin/python3",
    "The Python interpreter for tools.",
  ),
  SANDBOX_PYTHONS: optional(
    namedPaths("uv"),
    "`name=path` or `version=uv` with `,` between them, such as `3.12=/opt/python3.12/bin/python3`",
    "Other Python interpreters that tools may name as `python` in the manifest.",
  ),
  SANDBOX_PYTHON_DOWNLOADS: withDefault(
    z.enum(["0", "1"]),
    "0 or 1",
    "0",
    "With 1, uv downloads interpreters of `SANDBOX_PYTHONS` that it lacks, when a tool needs them.",
  ),
  SANDBOX_NODE_BIN: optional(
    absolutePath,
    "an absolute path",
    "The Node program, version 24 or later, for tools. Unset: the one that runs the worker.",
  ),
  SANDBOX_NODES: optional(
    namedPaths(),
    "`name=path` with `,` between them, such as `25=/opt/node25/bin/node`",
    "Other Node programs that tools may name as `node` in the manifest.",
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
  SANDBOX_DEFAULT_NETWORK: withDefault(
    z.enum(wideNetworks),
    `one of ${wideNetworks.join(", ")}`,
    "public",
    "What `standard` and your profiles that extend it reach where no [network](network.md) is named. `public`: every public address, on ports 80 and 443. `host`: all that the host reaches, its loopback services and the broker included.",
  ),
  SANDBOX_HOST_NETWORK: withDefault(
    z.enum(wideNetworks),
    `one of ${wideNetworks.join(", ")}`,
    "host",
    "What the network `host` of a profile or tool is on this worker. With `public`, no tool has the host's network.",
  ),
  SANDBOX_ALLOWED_MOUNTS: optional(
    absolutePaths,
    "absolute paths with `:` between them",
    "Files and directories of the host that a manifest may mount, with everything below. Unset: none.",
  ),
  SANDBOX_ALLOWED_DEVICES: optional(
    absolutePaths,
    "absolute paths with `:` between them",
    "Device files of the host that a manifest may request, or directories of them. Unset: none.",
  ),
  CREDENTIAL_SOURCES: withDefault(
    credentialSources,
    "`none`, or `file:/PATH` and `env:NAME` with `,` between them",
    "file:/run/secrets",
    "Where the values of [credentials](network.md#credentials) may come from: files, directories whose files may be used, variables.",
  ),
  SANDBOX_ALLOW_UNSAFE: withDefault(
    z.enum(["0", "1"]),
    "0 or 1",
    "0",
    "With 1, custom profiles may have the backend `host`, which isolates nothing. For development, with a DevBroker only.",
  ),
  SANDBOX_MINIMUM: withDefault(
    checkList,
    `one or more of ${checkNames.join(", ")}, with \`,\` between them`,
    defaultMinimum.join(","),
    "Checks of `str-worker doctor` that the host must hold. If one fails, the worker does not start.",
  ),
  SANDBOX_MAX_CONCURRENT: withDefault(
    wholeNumber(1, maxSlots),
    `a whole number, 1 to ${maxSlots}`,
    "4",
    "Calls that run concurrently, unless `WORKER_QUEUES` gives the slots of each queue.",
  ),
  SANDBOX_MAX_QUEUED: withDefault(
    wholeNumber(0, maxCount),
    `a whole number, 0 to ${maxCount}`,
    "100",
    "On a DevBroker, calls of a queue that wait for a slot; further ones are answered RESOURCE_EXHAUSTED. Other brokers keep them.",
  ),
  SANDBOX_MAX_SUSPENDED: optional(
    wholeNumber(1, maxCount),
    `a whole number, 1 to ${maxCount}`,
    "Calls that wait for tools that they have called, and lend their slots meanwhile. So many new calls of tools that call others start at most; further ones wait. Default: four for each slot.",
  ),
  WARM_MAX_MEMORY_MB: withDefault(
    wholeNumber(0, 2 ** 31),
    "megabytes",
    "512",
    "Memory of all idle sandboxes together; 0 for no idle sandboxes.",
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
  ...packageVariables,
  ...artifactVariables,
  ...auditVariables,
  HEALTH_PORT: withDefault(
    wholeNumber(0, 65_535),
    "a port, 1 to 65535, or 0 for none",
    "8081",
    "Port of the health probes `/livez`, `/readyz`, `/startup` and their other names, and of `/metrics`.",
  ),
  HEALTH_HOST: optional(
    text.min(1),
    "a host name or address",
    "Address of the health probes and metrics. Unset: every interface.",
  ),
  ...consoleVariables,
  ...runtimeVariables,
  DRAIN_TIMEOUT_SECONDS: withDefault(
    wholeNumber(0, maxTimeoutSeconds),
    `seconds, 0 to ${maxTimeoutSeconds}`,
    "30",
    "Time for running calls to finish after SIGTERM.",
  ),
  LOG_LEVEL: withDefault(
    z.enum(logLevels),
    `one of ${logLevels.join(", ")}`,
    "info",
    "Lowest level of the log.",
  ),
  LOG_FORMAT: withDefault(
    z.enum(logFormats),
    `one of ${logFormats.join(", ")}`,
    "auto",
    "Format of the log: `json` for programs, `pretty` for people; `auto` is `pretty` on a terminal, else `json`.",
  ),
  TOOL_LOGS: withDefault(
    z.enum(toolLogDestinations),
    `one of ${toolLogDestinations.join(", ")}`,
    "off",
    "Destination of what tools print. `log`: its end, in the debug log. `caller`: every line in the debug log, and the end in the answer too; for development.",
  ),
  TOOL_LOGS_MAX_KB: withDefault(
    wholeNumber(1, maxToolLogKilobytes),
    `kilobytes, 1 to ${maxToolLogKilobytes}`,
    "16",
    "Size of the end of standard output, and of standard error, that `TOOL_LOGS` keeps of a call.",
  ),
  ...tracingVariables,
});

/** What errors say of a variable. */
export function factsAbout(name: keyof typeof variables.shape): VariableFacts {
  return factsOf(variables.shape[name]);
}

/**
 * One row per variable for documents: name, default as the environment spells it, what is accepted,
 * what it means.
 */
export function describeVariables(): readonly VariableDescription[] {
  return Object.entries(variables.shape).map(([name, schema]) => {
    const { accepted, description } = factsOf(schema);
    return { name, defaultText: defaultOf(schema), accepted, description };
  });
}

/** A row of the configuration table. */
export interface VariableDescription extends Pick<VariableFacts, "accepted" | "description"> {
  readonly name: string;
  /** Undefined when there is no default. */
  readonly defaultText: string | undefined;
}
