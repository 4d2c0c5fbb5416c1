/**
 * Describes a tool: its runner reads signature, annotations and documentation in a sandbox like
 * that of a call.
 */
import { readResult } from "../invocation/steps/result.ts";
import { notAvailable } from "../invocation/steps/resolve.ts";
import type { ToolEntry } from "../manifest/manifest.ts";
import { type StartParts, prepareRequest } from "../pool/cold-starts.ts";
import type { ToolDescription } from "../protocol/discovery/tool-description.ts";
import { InvocationError } from "../protocol/errors.ts";
import type { ToolRunner } from "../runners/runner.ts";
import { NotGrantedError } from "../sandbox/host-access.ts";
import type { Profile } from "../sandbox/profile.ts";
import { SandboxError } from "../sandbox/sandbox.ts";
import type { JsonObject } from "../support/json/json.ts";
import { maxDescriptionBytes, readDescription, writeDescription } from "./answer.ts";
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
export async function describeTool(
  parts: StartParts,
  request: DescribeRequest,
  signal: AbortSignal,
): Promise<ToolDescription> {
  try {
    return await describe(parts, request, signal);
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof InvocationError) throw error;
    if (error instanceof NotGrantedError) {
      throw notAvailable(request.tool.name, error.publicReason, { cause: error });
    }
    const isSandbox = error instanceof SandboxError;
    const text = isSandbox ? "The sandbox could not be started" : "The tool could not be described";
    const code = isSandbox ? "SANDBOX_FAILED" : "INTERNAL_ERROR";
    throw new InvocationError(code, text, { cause: error });
  }
}

async function describe(
  parts: StartParts,
  request: DescribeRequest,
  signal: AbortSignal,
): Promise<ToolDescription> {
  const runner = parts.runners.get(request.tool.runtime);
  return runner?.describe === undefined
    ? await byRunner(parts, request, signal)
    : await byProgram(runner.describe.bind(runner), request, signal);
}

/** What the program says of its tools. */
async function byProgram(
  ask: NonNullable<ToolRunner["describe"]>,
  { tool, toolConfig }: DescribeRequest,
  signal: AbortSignal,
): Promise<ToolDescription> {
  const { name } = tool.callable;
  const found = await ask(tool, toolConfig, signal).catch((cause: unknown) => {
    signal.throwIfAborted();
    const text = "The program does not describe its tools";
    throw new InvocationError("EXECUTION_ERROR", text, { cause });
  });
  const described = found.get(name);
  if (described !== undefined) return readDescription(writeDescription(described));
  throw new InvocationError("TOOL_NOT_FOUND", `The program describes no tool "${name}"`);
}

/** What the runner of a language finds out. */
async function byRunner(
  parts: StartParts,
  { tool: entry, profile, toolConfig = {} }: DescribeRequest,
  signal: AbortSignal,
): Promise<ToolDescription> {
  // The description goes to others, and needs nobody: the module's import gets no network.
  const offline: Profile = { ...profile, network: "none" };
  await using prepared = await prepareRequest(parts, entry, offline);
  const { tool } = prepared;
  const mounts = [...prepared.request.mounts, ...(tool.describing ?? [])];
  await using sandbox = await parts.backend.acquire({ ...prepared.request, mounts }, signal);
  const start = () => sandbox.start(tool.launch);
  const bounds = { maxResultBytes: maxDescriptionBytes, limitMs: describeTimeoutMs };
  const run = { entry, tool, sandbox, start, task: "describe", toolConfig, ...bounds } as const;
  const { cause, report } = await runUncalled(run, signal);
  if (cause === "time-limit") {
    const seconds = describeTimeoutMs / 1000;
    const text = `The tool's module was not imported and described within ${seconds} s`;
    throw new InvocationError("SANDBOX_TIMEOUT", text);
  }
  const { value } = await readResult(sandbox.workDir, report, sandbox.limits, signal);
  return readDescription(value);
}
