/**
 * Describes a tool: its runner reads signature, annotations and documentation in a sandbox like
 * that of a call.
 */
import { readResult } from "../invocation/steps/result.ts";
import { notAvailable } from "../invocation/steps/resolve.ts";
import { maxProvided } from "../manifest/fields/provided.ts";
import type { ToolEntry } from "../manifest/manifest.ts";
import { type StartParts, prepareRequest } from "../pool/cold-starts.ts";
import type { ToolDescription } from "../protocol/discovery/tool-description.ts";
import { InvocationError } from "../protocol/errors.ts";
import { mapOf } from "../protocol/discovery/expand-schema.ts";
import { NotGrantedError } from "../sandbox/host-access.ts";
import type { Profile } from "../sandbox/profile.ts";
import type { PreparedTool } from "../runners/runner.ts";
import { type Sandbox, SandboxError } from "../sandbox/sandbox.ts";
import { type JsonObject, isJsonObject } from "../support/json/json.ts";
import { maxDescriptionBytes, readDescription } from "./answer.ts";
import { describeSchema, listed, maxSchemaBytes, readSchemas, schemaOf } from "./executable.ts";
import { runUncalled } from "./uncalled.ts";

/** Milliseconds that a tool may take to be imported and described. */
export const describeTimeoutMs = 30_000;

/** What is described. */
export interface DescribeRequest {
  readonly tool: ToolEntry;
  /** Of the tool's calls. Its network is taken away. */
  readonly profile: Profile;
  /** For class tools that make something of it; may hold secrets. */
  readonly toolConfig?: JsonObject;
}

/**
 * Describes a tool by its present code, in a cold sandbox of its own. Throws InvocationError, whose
 * message is public, and the signal's reason.
 */
export function describeTool(
  parts: StartParts,
  request: DescribeRequest,
  signal: AbortSignal,
): Promise<ToolDescription> {
  return withPublicErrors(request, signal, async () => {
    const { callable } = request.tool;
    if (callable.kind === "program") {
      return describeSchema(schemaOf(callable.name, await askProgram(parts, request, signal)));
    }
    const answer = await askRunner(parts, request, maxDescriptionBytes, signal);
    const { tools } = answer;
    if (!isJsonObject(tools)) return readDescription(answer);
    const its = `its tools: ${listed(Object.keys(tools))}`;
    const text = `Class "${callable.name}" provides several tools; name them by "tools" in the manifest; ${its}`;
    throw new InvocationError("TOOL_NOT_FOUND", text, { isToolsText: true });
  });
}

/**
 * Describes every tool of a program or of a provider class that the entry names alone, and the one
 * tool of another entry under its name. Throws as {@link describeTool}.
 */
export function describeTools(
  parts: StartParts,
  request: DescribeRequest,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, ToolDescription>> {
  return withPublicErrors(request, signal, async () => {
    const { callable, name } = request.tool;
    if (callable.kind === "program") {
      return described(await askProgram(parts, request, signal), describeSchema);
    }
    const answer = await askRunner(parts, request, maxSchemaBytes, signal);
    const { tools } = answer;
    return described(isJsonObject(tools) ? tools : { [name]: answer }, readDescription);
  });
}

function described(
  tools: JsonObject,
  read: (members: JsonObject) => ToolDescription,
): ReadonlyMap<string, ToolDescription> {
  const entries = Object.entries(tools).slice(0, maxProvided);
  return new Map(entries.map(([name, members]) => [name, read(mapOf(members))]));
}

async function withPublicErrors<T>(
  { tool }: DescribeRequest,
  signal: AbortSignal,
  ask: () => Promise<T>,
): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof InvocationError) throw error;
    if (error instanceof NotGrantedError) {
      throw notAvailable(tool.name, error.publicReason, { cause: error });
    }
    const isSandbox = error instanceof SandboxError;
    const text = isSandbox ? "The sandbox could not be started" : "The tool could not be described";
    const code = isSandbox ? "SANDBOX_FAILED" : "INTERNAL_ERROR";
    throw new InvocationError(code, text, { cause: error });
  }
}

/** A sandbox for a description, and the tool in it. */
interface Acquired extends AsyncDisposable {
  readonly tool: PreparedTool;
  readonly sandbox: Sandbox;
}

async function acquire(
  parts: StartParts,
  { tool: entry, profile }: DescribeRequest,
  signal: AbortSignal,
): Promise<Acquired> {
  await using held = new AsyncDisposableStack();
  // The description goes to others, and needs nobody: the module's import gets no network.
  const offline: Profile = { ...profile, network: "none" };
  const { tool, request } = held.use(await prepareRequest(parts, entry, offline));
  const mounts = [...request.mounts, ...(tool.describing ?? [])];
  const sandbox = held.use(await parts.backend.acquire({ ...request, mounts }, signal));
  const owned = held.move();
  return { tool, sandbox, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

/** What a program says of its tools, by their names. */
async function askProgram(
  parts: StartParts,
  request: DescribeRequest,
  signal: AbortSignal,
): Promise<JsonObject> {
  await using acquired = await acquire(parts, request, signal);
  const { tool, sandbox } = acquired;
  const { toolConfig = {} } = request;
  const program = { launch: tool.launch, sandbox, toolConfig, limitMs: describeTimeoutMs };
  return await readSchemas(program, signal);
}

/** What the runner of a language answers. */
async function askRunner(
  parts: StartParts,
  request: DescribeRequest,
  maxResultBytes: number,
  signal: AbortSignal,
): Promise<JsonObject> {
  await using acquired = await acquire(parts, request, signal);
  const { tool, sandbox } = acquired;
  const { tool: entry, toolConfig = {} } = request;
  const start = async (args: string, over?: AbortSignal) => {
    await sandbox.workDir.writeArguments(args);
    return await sandbox.start(tool.launch, over);
  };
  const bounds = { maxResultBytes, limitMs: describeTimeoutMs };
  const run = { entry, tool, sandbox, start, task: "describe", toolConfig, ...bounds } as const;
  const { cause, report } = await runUncalled(run, signal);
  if (cause === "time-limit") {
    const seconds = describeTimeoutMs / 1000;
    const text = `The tool's module was not imported and described within ${seconds} s`;
    throw new InvocationError("SANDBOX_TIMEOUT", text);
  }
  const { value } = await readResult(sandbox.workDir, report, sandbox.limits, signal);
  return value;
}
