/**
 * What a manifest file may say (design document, sections 6 and 12): one schema for checking, messages and editors.
 */
import { validRange } from "@renovatebot/pep440";
import { z } from "zod";
import { maxTimeoutSeconds } from "../protocol/limits.ts";
import { toolNameProblem } from "../protocol/topics.ts";

/** Tools in one manifest. Each is a subscription on the broker. */
export const maxTools = 1000;
/** Environment variables one tool may see. */
export const maxEnvNames = 64;
/** Longest version constraint, in characters. */
const maxVersionLength = 200;
/** Characters of a wrong text that a message repeats. */
const maxQuotedLength = 60;

/** Keys of other workers' manifests: harmless here, so that one file can serve both. */
export const foreignKeys: ReadonlySet<string> = new Set([
  "class_name",
  "executable",
  "parameters",
  "artifact_params",
  "instructions",
  "config_schema",
  "tool_dir",
  "resource_limits",
  "schema_refresh_seconds",
]);

/** Keys that describe a tool which is not a Python function; an entry without `function` may stand on them alone. */
export const foreignKinds = ["class_name", "executable"] as const;

/**
 * Variables that the sandbox sets itself, or that would change the interpreter or the loader in it: `ld.so(8)`,
 * `python(1)`, OpenSSL's configuration (it loads engines), shells that tools start.
 */
const reservedEnv =
  /^(?:LD_.*|PYTHON.*|GLIBC_TUNABLES|GCONV_PATH|LOCPATH|OPENSSL_(?:CONF|MODULES|ENGINES)|BASH_ENV|ENV|PATH|HOME|TMPDIR)$/;

/** Names a value in a message without giving away what may be secret: a URL can carry a password. */
export function describeValue(value: unknown): string {
  switch (typeof value) {
    case "string":
      return value.includes("://") ? "a URL" : quote(value);
    case "object":
      return value === null ? "nothing" : Array.isArray(value) ? "a list" : "a map";
    case "undefined":
      return "nothing";
    default:
      return String(value);
  }
}

function quote(text: string): string {
  const isCut = text.length > maxQuotedLength;
  return `${JSON.stringify(text.slice(0, maxQuotedLength))}${isCut ? "…" : ""}`;
}

/** The message of every check: what is accepted and what was found. */
export function expectation(what: string, value: unknown): string {
  if (value === undefined) return `required: ${what}`;
  return `expected ${what}, found ${describeValue(value)}`;
}

function accepts(what: string): { error: (issue: { input?: unknown }) => string } {
  return { error: ({ input }) => expectation(what, input) };
}

const importPath = accepts('a Python import path such as "package.module"');
const identifier = accepts("the name of a Python function (letters, digits and _)");
const packageName = accepts(
  "the name of a Python package (letters, digits, ., _ and -), without extras, version or URL",
);
const constraint = accepts(
  'a PEP 440 version constraint in quotes, such as ">=1.0,<2.0" or "==1.4.2"',
);
const seconds = accepts(`a number of seconds above 0 and at most ${maxTimeoutSeconds}`);
const text = accepts("text");
const envList = accepts(`a list of at most ${maxEnvNames} names of environment variables`);
/** Never repeats what it found: the likely mistake is `NAME=value`. */
const envName = {
  error: () =>
    "expected the name of an environment variable (letters, digits and _), without value",
};
const envReserved = {
  error: ({ input }: { input?: unknown }) =>
    `${describeValue(input)} cannot be passed on: it is set by the sandbox or changes how programs load in it`,
};

/** `version:` of the file. */
export const versionSchema = z.literal(
  1,
  accepts("1, the version of the manifest format that this worker reads"),
);

const toolName = {
  error: ({ input }: { input?: unknown }) =>
    `the name ${toolNameProblem(String(input)) ?? "does not start with a letter or digit"}`,
};

/** A tool's name: what a topic allows, with a letter or digit first. */
export const toolNameSchema = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]*$/, { ...toolName, abort: true })
  .refine((name) => toolNameProblem(name) === undefined, toolName);

/** The fields of one entry. An empty optional value (`package:`) counts as absent. */
function toolShape(profileNames: readonly string[]) {
  return {
    runtime: z
      .literal("python", accepts('"python"'))
      .nullish()
      .describe("Language of the tool. Default: python."),
    module: z
      .string(importPath)
      .regex(/^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$/, importPath)
      .describe("Python import path of the tool's module."),
    function: z
      .string(identifier)
      .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, identifier)
      .describe("Function to call."),
    package: z
      .string(packageName)
      .regex(/^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$/, packageName)
      .nullish()
      .describe("Python package that the tool needs."),
    version: z
      .string(constraint)
      .min(1, { ...constraint, abort: true })
      .max(maxVersionLength, { ...constraint, abort: true })
      .refine(validRange, constraint)
      .nullish()
      .describe('PEP 440 version constraint for `package`, such as ">=1.0,<2.0".'),
    description: z.string(text).nullish().describe("What the tool does, for people and agents."),
    timeout_seconds: z
      .number(seconds)
      .gt(0, seconds)
      .lte(maxTimeoutSeconds, seconds)
      .nullish()
      .describe("Seconds a call may take. A request can ask for less, never for more."),
    sandbox_profile: z
      .enum(profileNames, accepts(`one of ${profileNames.join(", ")}`))
      .nullish()
      .describe("Sandbox profile of the tool."),
    env: z
      .array(
        z
          .string(envName)
          .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, { ...envName, abort: true })
          .refine((name) => !reservedEnv.test(name), envReserved),
        envList,
      )
      .max(maxEnvNames, envList)
      .nullish()
      .describe("Names of the worker's environment variables that the tool may see."),
  };
}

/** Schema of one entry under `tools:`. */
export type ToolSchema = z.ZodObject<ReturnType<typeof toolShape>>;

/** One entry under `tools:` that passed. */
export type ToolFields = z.output<ToolSchema>;

/** The schema of one entry, where `profileNames` are the sandbox profiles that exist. */
export function toolSchema(profileNames: readonly string[]): ToolSchema {
  return z
    .object(toolShape(profileNames), accepts("a map of fields"))
    .refine(
      ({ package: name, version }) => typeof name === "string" || typeof version !== "string",
      {
        path: ["version"],
        error: 'allowed only together with "package"',
        // Also when another field is wrong, so that every problem is told at once.
        when: ({ value }) => typeof value === "object" && value !== null,
      },
    );
}

/** JSON Schema (draft 2020-12) of the whole file, for editors, with the names of the sandbox profiles to offer. */
export function manifestJsonSchema(profileNames: readonly string[]): object {
  const file = z.object({
    version: versionSchema.describe("Version of the manifest format."),
    tools: z.record(toolNameSchema, toolSchema(profileNames)).describe("The tools, by name."),
  });
  return z.toJSONSchema(file, { io: "input" });
}
