/**
 * The schema of manifest files (design document, sections 6 and 12), for checks and editors.
 */
import { z } from "zod";
import { maxTimeoutSeconds } from "../protocol/limits.ts";
import { networkField } from "../protocol/network-rules.ts";
import { entryNameSchema, limitsField } from "../protocol/operator-fields.ts";
import { queuePattern } from "../protocol/queue-names.ts";
import { isRecord } from "../support/json/yaml-document.ts";
import { accepts, expectation, unquoted } from "../support/text/expectation.ts";
import { credentialField, maxCredentials } from "./fields/credentials.ts";
import { describedFields } from "./fields/described.ts";
import { envNameField } from "./fields/env.ts";
import { executableShape, isExecutable } from "./fields/executable.ts";
import { providedField } from "./fields/provided.ts";
import { gatewayFields } from "./fields/gateway.ts";
import { devicesField, mountsField } from "./fields/host.ts";
import { interpreterField } from "./fields/interpreter.ts";
import {
  type PackageFields,
  nodePackageFields,
  packageProblems,
  pythonPackageFields,
} from "./fields/packages.ts";
import { interpretersOf, programPackages, programShape } from "./fields/program.ts";
import { startModes } from "./manifest.ts";
import { warmField } from "./fields/warm.ts";

/** Largest number of tools in a manifest; each is a subscription on the broker. */
export const maxTools = 1000;
/** Largest number of environment variables of a tool. */
export const maxEnvNames = 64;

/** Keys that only other kinds of workers use here, so that one file can serve both. */
export const foreignKeys: ReadonlySet<string> = new Set([
  "executable",
  "tool_dir",
  "resource_limits",
  "schema_refresh_seconds",
]);

const importPath = accepts('a Python import path such as "package.module"');
const filePath = accepts(
  'the path of a .js, .mjs, .ts or .mts file below the directory of Node tools, such as "weather/forecast.ts"',
);
const runtime = accepts("one of python, node, executable, code");
const identifier = accepts("the name of a Python function (letters, digits and _)");
const exportName = accepts("the name of an exported function (letters, digits, _ and $)");
const className = accepts("the name of a Python class (letters, digits and _)");
const flag = accepts("true or false");
const queueName = accepts("the name of a queue: 1 to 50 letters, digits, _ and -");
const providersOnly = { error: "allowed only with class_name or with an executable" };
const pythonOnly = { error: "allowed only with runtime python" };
const nodeOnly = { error: "allowed only with runtime node" };
const seconds = accepts(`a number of seconds above 0 and at most ${maxTimeoutSeconds}`);
const text = accepts("text");
const envList = accepts(`a list of at most ${maxEnvNames} names of environment variables`);
/** `version:` of the file, optional since there is one only. */
export const versionSchema = z
  .preprocess(
    unquoted,
    z.literal(1, accepts("1, the version of the manifest format that this worker reads")),
  )
  .nullish();

/** Module of a Python tool, with `function` or `class_name`. */
function pythonShape() {
  return {
    runtime: z
      .literal("python", runtime)
      .nullish()
      .describe("Language of the tool. Default: python."),
    module: z
      .string(importPath)
      .regex(/^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$/, importPath)
      .describe("Python import path of the tool's module."),
    function: z
      .string(identifier)
      .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, identifier)
      .nullish()
      .describe("Function to call."),
    class_name: z
      .string(className)
      .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, className)
      .nullish()
      .describe("Class whose instance runs the call. Goes before `function`."),
    tools: providedField,
    ...pythonPackageFields,
    python: interpreterField("3.12").describe(
      "Python that runs the tool, of SANDBOX_PYTHONS. Default: SANDBOX_PYTHON_BIN.",
    ),
    node: z.null(nodeOnly).optional(),
  };
}

/** Module of a Node tool. */
function nodeShape() {
  return {
    runtime: z.literal("node", runtime).describe("Language of the tool."),
    module: z
      .string(filePath)
      .regex(
        /^(?:[A-Za-z0-9_@-][A-Za-z0-9_.@-]*\/)*[A-Za-z0-9_@-][A-Za-z0-9_.@-]*\.m?[jt]s$/,
        filePath,
      )
      .describe("Path of the tool's file below TOOLS_NODE_DIR."),
    function: z
      .string(exportName)
      .regex(/^[A-Za-z_$][A-Za-z0-9_$]*$/, exportName)
      .describe("Exported function to call."),
    tools: z.null(providersOnly).optional(),
    class_name: z.null(pythonOnly).optional(),
    ...nodePackageFields,
    node: interpreterField("24").describe(
      "Node that runs the tool, of SANDBOX_NODES. Default: SANDBOX_NODE_BIN.",
    ),
    python: z.null(pythonOnly).optional(),
  };
}

/** Fields of a tool in any language. An empty optional value (`env:`) counts as absent. */
function commonShape(profile: ProfileSchema) {
  return {
    description: z.string(text).nullish().describe("What the tool does, for people and agents."),
    ...describedFields,
    timeout_seconds: z
      .preprocess(unquoted, z.number(seconds).gt(0, seconds).lte(maxTimeoutSeconds, seconds))
      .nullish()
      .describe("Seconds a call may take. A request can ask for less, never for more."),
    sandbox_profile: profile.nullish().describe("Sandbox profile of the tool."),
    limits: limitsField
      .nullish()
      .describe("Bounds that hold for this tool in place of its profile's."),
    network: networkField.nullish().describe("Network of the tool in place of its profile's."),
    isolate: z
      .boolean(flag)
      .nullish()
      .describe("Whether the tool sees nothing of the directory of tools but its own module."),
    mounts: mountsField
      .nullish()
      .describe("Files and directories of the host that the tool sees read-only."),
    devices: devicesField
      .nullish()
      .describe("Device files of the host that the tool may use, such as a GPU's."),
    idempotent: z
      .boolean(flag)
      .nullish()
      .describe(
        "Whether a call may run once more when its first run may have started and was never answered. Default: true.",
      ),
    queue: z
      .string(queueName)
      .regex(queuePattern, queueName)
      .nullish()
      .describe(
        "Queue of the worker group in which calls of the tool wait, one of WORKER_QUEUES. Default: default.",
      ),
    start: z
      .enum(startModes, accepts(`one of ${startModes.join(", ")}`))
      .nullish()
      .describe("How calls of the tool come to their sandboxes. Default: auto."),
    warm: warmField.nullish().describe("How many sandboxes of the tool wait for calls."),
    env: z
      .array(envNameField, envList)
      .max(maxEnvNames, envList)
      .nullish()
      .describe("Names of the worker's environment variables that the tool may see."),
    ...gatewayFields,
  };
}

/** Valid fields of one entry under `tools:`. */
export type ToolFields =
  | z.output<ReturnType<typeof pythonSchema>>
  | z.output<ReturnType<typeof nodeSchema>>
  | z.output<ReturnType<typeof executableSchema>>
  | z.output<ReturnType<typeof programSchemas>[keyof typeof programPackages]>;

/** Schemas of an entry, by language. */
export interface ToolSchemas {
  readonly python: ReturnType<typeof pythonSchema>;
  readonly node: ReturnType<typeof nodeSchema>;
  readonly executable: ReturnType<typeof executableSchema>;
  /** Of programs, by the interpreters of their languages. */
  readonly code: ReturnType<typeof programSchemas>;
}

/** The schemas of an entry; `profileNames` are all sandbox profiles. */
export function toolSchemas(profileNames: readonly string[]): ToolSchemas {
  const what = `one of ${profileNames.join(", ")} (own ones come from SANDBOX_PROFILES_FILE)`;
  return schemasWith(z.enum(profileNames, accepts(what)));
}

/** Accepted names of a profile, in words. */
type ProfileSchema = z.ZodType<string>;

function schemasWith(profile: ProfileSchema): ToolSchemas {
  return {
    python: pythonSchema(profile),
    node: nodeSchema(profile),
    executable: executableSchema(profile),
    code: programSchemas(profile),
  };
}

function pythonSchema(profile: ProfileSchema) {
  return z
    .object({ ...pythonShape(), ...commonShape(profile) }, accepts("a map of fields"))
    .superRefine(checkPackages("python"), { when: isObject })
    .refine(({ class_name: name, tools }) => isGiven(name) || !isGiven(tools), {
      path: ["tools"],
      ...providersOnly,
      when: isObject,
    })
    .refine(({ function: name, class_name: other }) => isGiven(name) || isGiven(other), {
      path: ["function"],
      error: expectation("the name of a Python function, or class_name in its place", undefined),
      when: isObject,
    });
}

function nodeSchema(profile: ProfileSchema) {
  return z
    .object({ ...nodeShape(), ...commonShape(profile) }, accepts("a map of fields"))
    .superRefine(checkPackages("node"), { when: isObject });
}

function checkPackages(runtime: "python" | "node") {
  return (fields: PackageFields, context: z.RefinementCtx): void => {
    for (const { path, message } of packageProblems(runtime, fields))
      context.addIssue({ code: "custom", path, message });
  };
}

function executableSchema(profile: ProfileSchema) {
  return z.object({ ...executableShape, ...commonShape(profile) }, accepts("a map of fields"));
}

/** By the interpreters of the programs' languages. */
function programSchemas(profile: ProfileSchema) {
  const common = { ...commonShape(profile), ...programShape };
  const { python, node, both } = programPackages;
  return {
    python: z
      .object({ ...common, ...python }, accepts("a map of fields"))
      .superRefine(checkPackages("python"), { when: isObject }),
    node: z
      .object({ ...common, ...node }, accepts("a map of fields"))
      .superRefine(checkPackages("node"), { when: isObject }),
    both: z.object({ ...common, ...both }, accepts("a map of fields")),
  };
}

type ToolSchema = Exclude<ToolSchemas[keyof ToolSchemas], ToolSchemas["code"]> | CodeSchema;
type CodeSchema = ToolSchemas["code"][keyof ToolSchemas["code"]];

/** The schema of an entry, by what it says itself. */
export function schemaOf(schemas: ToolSchemas, fields: unknown): ToolSchema {
  if (!isRecord(fields)) return schemas.python;
  if (isExecutable(fields)) return schemas.executable;
  const { runtime: language, languages } = fields;
  if (language === "code") return schemas.code[interpretersOf(languages)];
  return language === "node" ? schemas.node : schemas.python;
}

/** Checks several fields even when another one is invalid, to report all problems. */
function isObject({ value }: { value: unknown }): boolean {
  return typeof value === "object" && value !== null;
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null;
}

/**
 * JSON Schema (draft 2020-12) of the file, for editors. It offers the names of the sandbox
 * profiles, and accepts others.
 */
export function manifestJsonSchema(profileNames: readonly string[]): object {
  const { python, node, executable, code } = schemasWith(
    z.union([z.enum(profileNames), entryNameSchema]),
  );
  const file = z.object({
    version: versionSchema.describe("Version of the manifest format. Default: 1."),
    credentials: z
      .record(entryNameSchema, credentialField)
      .nullish()
      .describe(
        `Credentials that the worker adds to requests, by name; at most ${maxCredentials}.`,
      ),
    tools: z
      .record(
        entryNameSchema,
        z.union([python, node, executable, code.python, code.node, code.both]),
      )
      .describe("The tools, by name."),
  });
  return z.toJSONSchema(file, { io: "input" });
}
