/**
 * Checks arguments and results of calls against the schemas of their tools.
 */
import type { ToolEntry } from "../../manifest/manifest.ts";
import type { CallDescription } from "../../protocol/discovery/tool-description.ts";
import { InvocationError } from "../../protocol/errors.ts";
import type { ArtifactReference, Invocation } from "../../protocol/invocation.ts";
import { maxArtifacts } from "../../protocol/messages/request.ts";
import { type Json, type JsonObject, isJsonObject } from "../../support/json/json.ts";
import { requireProgramResult } from "../programs/program.ts";
import {
  CheckFailedError,
  type SchemaChecker,
  checkTimeoutMs,
} from "../arguments/schema-checker.ts";

/** Dependencies: what is known of tools, and the checker. */
export interface ArgumentParts {
  /** Rejects with the signal's reason. */
  readonly described: (tool: ToolEntry, signal: AbortSignal) => Promise<CallDescription>;
  readonly checker: Pick<SchemaChecker, "check">;
}

/**
 * The call as its tool gets it: with converted arguments, and with a reference for each artifact
 * parameter that has a filename only. Throws InvocationError `INVALID_REQUEST` that names the
 * argument, `RESOURCE_EXHAUSTED` when the check takes too long, or the signal's reason.
 */
export async function checkArguments(
  { described, checker }: ArgumentParts,
  tool: ToolEntry,
  invocation: Invocation,
  signal: AbortSignal,
): Promise<Invocation> {
  const description = await described(tool, signal);
  const { validate, coerce } = tool.argumentRules;
  const { parameters, config } = description;
  if (validate && config !== undefined) {
    const check = { schema: config, value: invocation.toolConfig, coerce: false, isSecret: true };
    await convert(checker, check, "params.tool_config", signal);
  }
  if (!validate || parameters === undefined) return withReferences(invocation, description);
  const value = withFilenames(invocation);
  const check = { schema: parameters, value, coerce, isSecret: false };
  const args = await convert(checker, check, "params.args", signal);
  const isConverted = args !== value && isJsonObject(args);
  return withReferences(isConverted ? { ...invocation, args } : invocation, description);
}

/**
 * Checks a result against the manifest's `output_schema`, or that of a program for its members.
 * Throws InvocationError `EXECUTION_ERROR`, or the signal's reason.
 */
export async function checkResult(
  { checker }: Pick<ArgumentParts, "checker">,
  tool: Pick<ToolEntry, "described" | "languages">,
  value: JsonObject,
  signal: AbortSignal,
): Promise<void> {
  requireProgramResult(tool, value);
  const { result: schema } = tool.described;
  if (schema === undefined) return;
  const verdict = await judge(checker, { schema, value, coerce: false, isSecret: false }, signal);
  if (verdict.problem === undefined) return;
  const message = `The tool's result does not match its output_schema: result${verdict.problem}`;
  const options = { isToolsText: true, op: "validate_output" } as const;
  throw new InvocationError("EXECUTION_ERROR", message, options);
}

type CheckedValue = Parameters<SchemaChecker["check"]>[0];

/**
 * The value, converted if that was asked for. Throws InvocationError `INVALID_REQUEST`, or
 * `RESOURCE_EXHAUSTED` for one whose check takes too long.
 */
async function convert(
  checker: ArgumentParts["checker"],
  checked: CheckedValue,
  field: string,
  signal: AbortSignal,
): Promise<Json> {
  const { problem, value = checked.value, isUnchecked } = await judge(checker, checked, signal);
  if (problem === undefined) return value;
  if (isUnchecked) throw new InvocationError("RESOURCE_EXHAUSTED", `The call's ${field}${problem}`);
  // The message may have values of the caller, which belong into no log.
  const options = { quotesArguments: true };
  throw new InvocationError("INVALID_REQUEST", `Invalid request: ${field}${problem}`, options);
}

/** The converted value if there is one, or what is wrong: the place and the reason. */
async function judge(
  checker: ArgumentParts["checker"],
  checked: CheckedValue,
  signal: AbortSignal,
): Promise<{ readonly value?: Json; readonly problem?: string; readonly isUnchecked?: true }> {
  try {
    const answer = await checker.check(checked, signal);
    return answer.ok ? answer : { problem: `${answer.mismatch.path}: ${answer.mismatch.message}` };
  } catch (error) {
    if (!(error instanceof CheckFailedError)) throw error;
    const seconds = checkTimeoutMs / 1000;
    const problem = `: could not be checked against its schema within ${seconds} s`;
    return { problem, isUnchecked: true };
  }
}

/** The arguments with the filenames of artifacts that the request brings besides. */
function withFilenames({ args, references, preloaded }: Invocation): JsonObject {
  const filenames = new Map<string, Json>();
  for (const [key, { filename }] of [...references, ...preloaded]) {
    const [, parameter = key, index] = /^(.*)\[(\d+)\]$/s.exec(key) ?? [];
    if (Object.hasOwn(args, parameter)) continue;
    const listed = filenames.get(parameter);
    const before = Array.isArray(listed) ? (listed as readonly Json[]) : [];
    filenames.set(parameter, index === undefined ? filename : [...before, filename]);
  }
  return filenames.size === 0 ? args : { ...args, ...Object.fromEntries(filenames) };
}

/** With a reference for each artifact parameter that has a bare filename, or a list of them. */
function withReferences(
  invocation: Invocation,
  { artifactParameters }: Pick<CallDescription, "artifactParameters">,
): Invocation {
  const { args, references, preloaded } = invocation;
  const added = new Map<string, ArtifactReference>();
  for (const [parameter, { mayBeText = false }] of artifactParameters) {
    const value = Object.hasOwn(args, parameter) ? args[parameter] : undefined;
    const filenames: readonly Json[] = Array.isArray(value) ? value : [value ?? ""];
    for (const [index, filename] of filenames.entries()) {
      const key = Array.isArray(value) ? `${parameter}[${index}]` : parameter;
      const isBare = typeof filename === "string" && filename !== "";
      if (!isBare || references.has(key) || preloaded.has(key)) continue;
      const isOptional = mayBeText && !Array.isArray(value);
      added.set(key, { filename, version: undefined, isOptional });
    }
  }
  if (added.size === 0) return invocation;
  if (added.size + references.size > maxArtifacts) {
    const message = `Invalid request: params.args: expected at most ${maxArtifacts} artifacts`;
    throw new InvocationError("INVALID_REQUEST", message);
  }
  return { ...invocation, references: new Map([...references, ...added]) };
}
