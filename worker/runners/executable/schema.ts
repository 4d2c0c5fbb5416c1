/**
 * What an executable says of its tools: `PROGRAM --schema [--config FILE]` in a sandbox of its own.
 */
import { join } from "node:path";
import type { Readable } from "node:stream";
import { z } from "zod";
import type {
  ArtifactParameter,
  ToolDescription,
} from "../../protocol/discovery/tool-description.ts";
import { type Profile, restrictiveProfile } from "../../sandbox/profile.ts";
import { type SandboxBackend, SandboxError, workDirInside } from "../../sandbox/sandbox.ts";
import { workDirNames } from "../../sandbox/work/work-dir.ts";
import { decodeJson } from "../../support/json/json-decoder.ts";
import { JsonError, type JsonObject, isJsonObject } from "../../support/json/json.ts";
import type { PreparedTool } from "../runner.ts";

/** Milliseconds that a program may take to describe its tools. */
export const describeTimeoutMs = 30_000;
/** Largest description of a program's tools, in bytes. */
export const maxDescriptionBytes = 1024 * 1024;
/** Tools of one program that are read. */
const maxTools = 100;
/** Characters of the program's error output in a message. */
const maxReasonLength = 500;

/** No network and nothing of a caller. */
const describingProfile = restrictiveProfile;

const schemaObject = z.custom<JsonObject>((value) => isJsonObject(value));
const configField = z.looseObject({
  key: z.string(),
  type: z.string().nullish(),
  description: z.string().nullish(),
  required: z.boolean().nullish(),
  default: z.json().optional(),
  options: z.array(z.json()).nullish(),
});
const artifactParameter = z.looseObject({
  is_list: z.boolean().nullish(),
  is_optional: z.boolean().nullish(),
});
const toolSchema = z.looseObject({
  description: z.string().nullish(),
  parameters: schemaObject.nullish(),
  artifact_params: z.record(z.string(), artifactParameter).nullish(),
  config_schema: z.array(configField).nullish(),
});
const programSchema = z.looseObject({ tools: z.record(z.string(), toolSchema) });

/** Which program is asked, and with what. */
export interface Question {
  /** For messages. */
  readonly name: string;
  /** The configuration that descriptions may depend on; undefined for none. */
  readonly config: JsonObject | undefined;
  readonly signal: AbortSignal;
}

/**
 * The program's tools by name. Throws SandboxError with the reason, also when it takes longer than
 * {@link describeTimeoutMs}; the signal's reason.
 */
export async function describeProgram(
  backend: Pick<SandboxBackend, "acquire">,
  prepare: (profile: Profile) => Promise<PreparedTool>,
  { name, config, signal }: Question,
): Promise<ReadonlyMap<string, ToolDescription>> {
  const late = AbortSignal.timeout(describeTimeoutMs);
  const over = AbortSignal.any([signal, late]);
  await using tool = await prepare(describingProfile);
  const { mounts, environment, memoryBound, launch } = tool;
  const request = { profile: describingProfile, memoryBound, mounts, devices: [], environment };
  await using sandbox = await backend.acquire(request, over);
  const configFile = join(workDirInside, workDirNames.args);
  if (config !== undefined) await sandbox.workDir.writeArguments(JSON.stringify(config));
  const [program = ""] = launch.argv;
  const options = config === undefined ? [] : ["--config", sandbox.locate(configFile)];
  const execution = await sandbox.start({ argv: [program, "--schema", ...options] });
  const stop = (): void => void execution.stop(0).catch(() => undefined);
  over.addEventListener("abort", stop, { once: true });
  if (over.aborted) stop();
  const printed = await readUpTo(execution.stdout, maxDescriptionBytes, stop);
  const { exitCode, stderr } = await execution.exited;
  signal.throwIfAborted();
  const seconds = describeTimeoutMs / 1000;
  if (late.aborted) throw new SandboxError(`${name} does not describe itself within ${seconds} s`);
  if (printed === undefined)
    throw new SandboxError(`${name} describes itself in more than ${maxDescriptionBytes} bytes`);
  if (exitCode !== 0) {
    const reason = stderr.text.trim().slice(-maxReasonLength);
    throw new SandboxError(`${name} --schema failed: ${reason || `exit code ${exitCode}`}`);
  }
  return toDescriptions(name, await decode(name, printed, signal));
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

async function decode(name: string, printed: Buffer, signal: AbortSignal): Promise<unknown> {
  try {
    return await decodeJson(printed, signal);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    throw new SandboxError(`${name} --schema prints no JSON: ${error.message}`, { cause: error });
  }
}

function toDescriptions(name: string, document: unknown): ReadonlyMap<string, ToolDescription> {
  const { data, error } = programSchema.safeParse(document);
  if (data === undefined) {
    const { path = [], message = "" } = error?.issues[0] ?? {};
    const place = ["--schema", ...path].join(".");
    throw new SandboxError(
      `${name} describes its tools otherwise than agreed: ${place}: ${message}`,
    );
  }
  const tools = Object.entries(data.tools).slice(0, maxTools);
  return new Map(tools.map(([tool, schema]) => [tool, toDescription(schema)]));
}

function toDescription(schema: z.output<typeof toolSchema>): ToolDescription {
  const artifacts = Object.entries(schema.artifact_params ?? {}).map(
    ([parameter, { is_list: isList, is_optional: isOptional }]): [string, ArtifactParameter] => [
      parameter,
      { isList: isList ?? false, isOptional: isOptional ?? false },
    ],
  );
  return {
    description: schema.description ?? undefined,
    parameters: schema.parameters ?? undefined,
    result: undefined,
    config: toConfigSchema(schema.config_schema ?? []),
    artifactParameters: new Map(artifacts),
  };
}

/** JSON Schema of a list of fields; undefined for an empty one. */
function toConfigSchema(fields: readonly z.output<typeof configField>[]): JsonObject | undefined {
  if (fields.length === 0) return undefined;
  const properties = fields.map(
    ({ key, type, description, default: value, options }): [string, JsonObject] => [
      key,
      {
        type: type ?? "string",
        ...(typeof description === "string" && { description }),
        ...(value !== undefined && { default: value }),
        ...(options && { examples: options }),
      },
    ],
  );
  const required = fields.flatMap(({ key, required: isRequired }) => (isRequired ? [key] : []));
  return { type: "object", properties: Object.fromEntries(properties), required };
}
