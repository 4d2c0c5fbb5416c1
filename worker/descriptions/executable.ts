/**
 * What an executable says of its tools: `PROGRAM --schema [--config FILE]`.
 */
import { join } from "node:path";
import type { Readable } from "node:stream";
import { runToExit } from "../invocation/steps/run-to-exit.ts";
import { withoutDirectories } from "../invocation/steps/result.ts";
import type { ToolDescription } from "../protocol/discovery/tool-description.ts";
import { InvocationError } from "../protocol/errors.ts";
import { type Launch, type Sandbox, workDirInside } from "../sandbox/sandbox.ts";
import { workDirNames } from "../sandbox/work/work-dir.ts";
import { decodeJson } from "../support/json/json-decoder.ts";
import { JsonError, type JsonObject, isJsonObject } from "../support/json/json.ts";
import { readDescription } from "./answer.ts";

/** Bytes that a program may print about all its tools. */
export const maxSchemaBytes = 1024 * 1024;
/** Characters of the program's error output in a message. */
const maxReasonLength = 500;
/** Names of a program's tools in a message. */
const maxListedNames = 10;
/** Characters of each. */
const maxNameLength = 60;

/** A program in a sandbox that is not started. */
export interface UndescribedProgram {
  readonly launch: Launch;
  readonly sandbox: Sandbox;
  /** Descriptions may depend on it; may hold secrets. */
  readonly toolConfig: JsonObject;
  readonly limitMs: number;
}

/**
 * What a program says of its tools, by their names. Throws InvocationError with a public message,
 * SandboxError, and the signal's reason.
 */
export async function readSchemas(
  { launch, sandbox, toolConfig, limitMs }: UndescribedProgram,
  signal: AbortSignal,
): Promise<JsonObject> {
  const hasConfig = Object.keys(toolConfig).length > 0;
  if (hasConfig) await sandbox.workDir.writeArguments(JSON.stringify(toolConfig));
  const configFile = sandbox.locate(join(workDirInside, workDirNames.args));
  const [program = ""] = launch.argv;
  const argv = [program, "--schema", ...(hasConfig ? ["--config", configFile] : [])];
  const execution = await sandbox.start({ argv }, signal);
  const stop = (): void => void execution.stop(0).catch(() => undefined);
  const [printed, { cause, report }] = await Promise.all([
    readUpTo(execution.stdout, maxSchemaBytes, stop),
    runToExit(execution, limitMs, signal),
  ]);
  if (cause === "time-limit") {
    const text = `The tool's program does not describe itself within ${limitMs / 1000} s`;
    throw new InvocationError("SANDBOX_TIMEOUT", text);
  }
  if (printed === undefined) {
    const text = `The tool's program describes itself in more than ${maxSchemaBytes} bytes`;
    throw new InvocationError("RESOURCE_EXHAUSTED", text);
  }
  if (report.exitCode !== 0) {
    const { exitCode, signal: killedBy, stderr } = report;
    // Descriptions go to everybody, and what a program prints may be a secret of its environment.
    const cause = new Error(withoutDirectories(stderr.text.trim()).slice(-maxReasonLength));
    throw undescribed(
      exitCode === undefined ? `it ended by ${killedBy}` : `exit code ${exitCode}`,
      cause,
    );
  }
  const document = await decode(printed, signal);
  const tools = isJsonObject(document) ? document["tools"] : undefined;
  if (!isJsonObject(tools)) throw undescribed('it prints no object with "tools"');
  return tools;
}

/** Undefined for a longer text, which `stop` ends. */
async function readUpTo(
  stream: Readable,
  limit: number,
  stop: () => void,
): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > limit) stop();
    else chunks.push(chunk);
  }
  return length > limit ? undefined : Buffer.concat(chunks);
}

async function decode(printed: Buffer, signal: AbortSignal): Promise<unknown> {
  try {
    return await decodeJson(printed, signal);
  } catch (error) {
    if (error instanceof JsonError) throw undescribed(`it prints no JSON: ${error.message}`);
    throw error;
  }
}

/**
 * The tool of a program; one of a single tool may know it by another name. Throws InvocationError.
 */
export function schemaOf(name: string, tools: JsonObject): JsonObject {
  const names = Object.keys(tools);
  const known = names.length === 1 ? names[0] : name;
  const schema = known !== undefined && Object.hasOwn(tools, known) ? tools[known] : undefined;
  if (isJsonObject(schema)) return schema;
  const text = `The tool's program has no tool "${name}"; its tools: ${listed(names)}`;
  throw new InvocationError("TOOL_NOT_FOUND", text, { isToolsText: true });
}

/** A tool of a program as descriptions have it. Throws InvocationError beyond a bound. */
export function describeSchema(schema: JsonObject): ToolDescription {
  const { description, parameters, artifact_params: artifacts, config_schema: fields } = schema;
  const config = toConfigSchema(fields);
  return readDescription({
    ...(description !== undefined && { description }),
    ...(parameters !== undefined && { parameters }),
    ...(config !== undefined && { config }),
    ...(artifacts !== undefined && { artifact_parameters: artifacts }),
  });
}

/** The first names, which a tool's code has made up and may be long. */
export function listed(names: readonly string[]): string {
  const shown = names.slice(0, maxListedNames).map((name) => {
    const isCut = name.length > maxNameLength;
    return isCut ? `${name.slice(0, maxNameLength).toWellFormed()}…` : name;
  });
  const more = names.length - shown.length;
  return [...shown, ...(more > 0 ? [`${more} more`] : [])].join(", ");
}

/** JSON Schema of a list of fields; undefined without fields. Unusable ones are left out. */
function toConfigSchema(given: unknown): JsonObject | undefined {
  const fields = (Array.isArray(given) ? (given as unknown[]) : []).filter(isField);
  if (fields.length === 0) return undefined;
  const properties = fields.map(({ key, type, description, default: value, options }) => [
    key,
    {
      type: typeof type === "string" ? type : "string",
      ...(typeof description === "string" && { description }),
      ...(value !== undefined && { default: value }),
      ...(Array.isArray(options) && { examples: options }),
    },
  ]);
  const required = fields.flatMap((field) => (field["required"] === true ? [field.key] : []));
  return {
    type: "object",
    properties: Object.fromEntries(properties) as JsonObject,
    required,
  };
}

function isField(field: unknown): field is JsonObject & { readonly key: string } {
  return isJsonObject(field) && typeof field["key"] === "string";
}

function undescribed(reason: string, cause?: Error): InvocationError {
  const text = `The tool's program does not describe itself: ${reason}`;
  return new InvocationError("EXECUTION_ERROR", text, { isToolsText: true, cause });
}
