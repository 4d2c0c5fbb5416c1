/**
 * The spine: one call from a checked request to its outcome, read from top to bottom.
 */
import { statfs } from "node:fs/promises";
import { type ArtifactScope, type ArtifactStore, StoreError } from "../artifacts/store.ts";
import type { ToolEntry } from "../manifest/manifest.ts";
import { InvocationError } from "../protocol/errors.ts";
import type { Answer, Caller, Invocation, InvocationOutcome } from "../protocol/invocation.ts";
import { maxMessageBytes } from "../protocol/limits.ts";
import {
  type PreparedTool,
  type StagedArtifact,
  type ToolRunner,
  runnerArgs,
} from "../runners/runner.ts";
import { type Profile, type Profiles, chooseProfileName } from "../sandbox/profile.ts";
import {
  type Sandbox,
  type SandboxBackend,
  SandboxError,
  insidePaths,
} from "../sandbox/sandbox.ts";
import type { WorkDir } from "../sandbox/work-dir.ts";
import { openStatusChannel } from "../sandbox/status-channel.ts";
import type { Clock } from "../support/clock.ts";
import { type Slots, SlotsFullError } from "../support/slots.ts";
import type { Logger } from "../telemetry/logger.ts";
import { collectOutputs } from "./collect.ts";
import { type CallTimes, callTimes, remainingLimitMs } from "./limits.ts";
import { readResult } from "./result.ts";
import { runToExit } from "./run-to-exit.ts";
import { stageArguments, stageArtifacts } from "./stage.ts";

/** What the invoker works with; `app.ts` wires it. */
export interface InvokerParts {
  readonly resolve: (toolName: string) => ToolEntry | undefined;
  readonly slots: Slots;
  readonly runners: ReadonlyMap<ToolEntry["runtime"], ToolRunner>;
  readonly backend: Pick<SandboxBackend, "acquire">;
  readonly store: Pick<ArtifactStore, "open" | "save">;
  readonly scopeOf: (caller: Caller) => ArtifactScope;
  readonly profiles: Profiles;
  readonly defaultProfile: string;
  readonly defaultTimeoutSeconds: number;
  /** Directory whose file system must have `minFreeDiskBytes` free. */
  readonly workBase: string;
  readonly minFreeDiskBytes: number;
  readonly clock: Clock;
}

/** What a call may use while it runs. */
export interface CallContext {
  /** Aborts when the worker gives up on calls, whatever they are at; then the outcome is `given-up`. */
  readonly signal: AbortSignal;
  /** Aborts when the worker gives up on calls that have no slot yet, with the same outcome. */
  readonly waitSignal: AbortSignal;
  readonly log: Logger;
  onStatus(text: string): void;
}

/** Runs calls. */
export interface Invoker {
  /** Total: never throws; every failure is an outcome. */
  invoke(invocation: Invocation, context: CallContext): Promise<InvocationOutcome>;
}

/** Thrown inside the spine for a call whose time is over. */
class TimeLimitReached extends Error {}

/** How far a call has come, for what may be done with it when it does not get to its end. */
type Progress = Pick<Extract<InvocationOutcome, { kind: "given-up" }>, "begun" | "mayRunAgain">;

/** Creates the invoker. */
export function createInvoker(parts: InvokerParts): Invoker {
  return {
    async invoke(invocation, context) {
      const startMs = parts.clock.monotonicMs();
      let progress: Progress = { begun: false, mayRunAgain: true };
      const onBegin = (tool: ToolEntry): void => {
        progress = { begun: true, mayRunAgain: tool.idempotent };
      };
      const ending = await run(parts, invocation, context, onBegin).then(
        (success) => ({ kind: "success", ...success }) as const,
        (error: unknown) => endingBy(error, context, progress),
      );
      const executionTimeMs = Math.round(parts.clock.monotonicMs() - startMs);
      return { ...ending, executionTimeMs, mayRunAgain: progress.mayRunAgain };
    },
  };
}

type Success = Pick<Extract<Answer, { kind: "success" }>, "toolResult" | "createdArtifacts">;

/** How a call ended whose run threw. */
function endingBy(error: unknown, context: CallContext, { begun }: Progress) {
  if (error instanceof TimeLimitReached) return { kind: "timeout" } as const;
  if (isGivenUp(error, context)) return { kind: "given-up", begun } as const;
  return { kind: "error", error: asInvocationError(error) } as const;
}

/** Whether the worker's giving up made a run throw. What was found wrong with the call before that is still its answer. */
function isGivenUp(error: unknown, { signal, waitSignal }: CallContext): boolean {
  if (signal.aborted && !(error instanceof InvocationError)) return true;
  return [signal, waitSignal].some(({ aborted, reason }) => aborted && hasCause(error, reason));
}

function hasCause(error: unknown, cause: unknown): boolean {
  return error === cause || (error instanceof Error && hasCause(error.cause, cause));
}

/** @param onBegin told right before the tool's process may run */
async function run(
  parts: InvokerParts,
  invocation: Invocation,
  context: CallContext,
  onBegin: (tool: ToolEntry) => void,
): Promise<Success> {
  const { signal, log, onStatus } = context;
  const tool = resolveTool(parts, invocation.toolName);
  const profile = resolveProfile(parts, tool, invocation);
  const times = callTimes(tool, invocation, parts.defaultTimeoutSeconds);

  using _slot = await leaseSlot(parts, times, context);
  await requireFreeDisk(parts);

  const scope = parts.scopeOf(invocation.caller);
  await using prepared = await prepare(parts, tool, profile);
  await using sandbox = await acquire(parts, prepared, profile, signal);
  const { workDir } = sandbox;
  const { preloaded, references } = invocation;
  log.debug({ preloaded: preloaded.size, references: references.size }, "staging inputs");
  const artifacts = await stage(parts, invocation, workDir, scope, times, signal);
  const paths = { work: insidePaths.work, tools: prepared.toolsPath };
  await stageArguments(workDir, runnerArgs(tool, invocation, artifacts, paths, maxMessageBytes));

  using status = await openStatusChannel(workDir.statusPipe, onStatus);
  const limitMs = remainingLimitMs(times, parts.clock.nowMs());
  if (limitMs <= 0) throw new TimeLimitReached();
  onBegin(tool);
  const execution = await sandbox.start(prepared.launch);
  const { memory } = prepared;
  const { unenforced } = sandbox;
  log.info({ profile: profile.name, limitMs, memory, unenforced }, "tool started");
  const { cause, report } = await runToExit(execution, limitMs, signal);
  status.finish();
  log.debug({ report, droppedStatusLines: status.droppedLines }, "tool process ended");
  if (cause === "time-limit") throw new TimeLimitReached();

  const exceeded = report.exceeded ?? prepared.boundReached?.(report);
  const result = await readResult(workDir, { ...report, exceeded }, signal);
  const collection = { store: parts.store, scope, limits: profile.limits, log };
  const createdArtifacts = await collectOutputs(workDir, result.outputs, collection, signal);
  return { toolResult: result.value, createdArtifacts };
}

/** Loads the inputs, no longer than the tool itself may take: a store that hangs must not hold a slot for ever. */
async function stage(
  { store, clock, workBase, minFreeDiskBytes }: InvokerParts,
  invocation: Invocation,
  workDir: WorkDir,
  scope: ArtifactScope,
  times: CallTimes,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, StagedArtifact>> {
  const over = AbortSignal.timeout(Math.max(0, remainingLimitMs(times, clock.nowMs())));
  const maxBytes = (await freeBytes(workBase)) - minFreeDiskBytes;
  try {
    const origin = { store, scope, maxBytes };
    return await stageArtifacts(invocation, workDir, origin, AbortSignal.any([signal, over]));
  } catch (error) {
    if (over.aborted && !signal.aborted) throw new TimeLimitReached();
    throw error;
  }
}

function resolveTool(parts: InvokerParts, toolName: string): ToolEntry {
  const tool = parts.resolve(toolName);
  if (tool !== undefined) return tool;
  throw new InvocationError(
    "TOOL_NOT_AVAILABLE",
    `Tool '${toolName}' is not available on this worker`,
  );
}

function resolveProfile(parts: InvokerParts, tool: ToolEntry, invocation: Invocation): Profile {
  const requested = invocation.requestedProfile;
  if (requested !== undefined && !parts.profiles.has(requested)) {
    throw new InvocationError(
      "INVALID_REQUEST",
      `Invalid request: params.sandbox_profile: unknown profile, expected one of ${[...parts.profiles.keys()].join(", ")}`,
    );
  }
  const name = chooseProfileName({
    manifest: tool.profile,
    requested,
    fallback: parts.defaultProfile,
  });
  const profile = parts.profiles.get(name);
  if (profile === undefined)
    throw new Error(`profile "${name}" of tool "${tool.name}" does not exist`);
  return profile;
}

/** Waits for a slot, as long as a tool that then starts could still be answered. */
async function leaseSlot(
  { slots, clock }: InvokerParts,
  times: CallTimes,
  { signal, waitSignal, log }: CallContext,
): Promise<Disposable> {
  const waitMs = remainingLimitMs(times, clock.nowMs());
  if (waitMs <= 0) throw new TimeLimitReached();
  // Not the agent's own deadline: the answer must still find it waiting.
  const over = AbortSignal.timeout(waitMs);
  const { inUse, capacity, waiting } = slots;
  if (inUse === capacity) log.debug({ running: inUse, waiting }, "no slot is free");
  try {
    return await slots.acquire(AbortSignal.any([signal, waitSignal, over]));
  } catch (error) {
    if (error instanceof SlotsFullError) {
      throw new InvocationError(
        "RESOURCE_EXHAUSTED",
        `The worker is busy: ${slots.capacity} calls run and ${error.maxWaiting} wait already`,
        { cause: error },
      );
    }
    if (error === over.reason) throw new TimeLimitReached();
    throw error;
  }
}

async function requireFreeDisk({ workBase, minFreeDiskBytes }: InvokerParts): Promise<void> {
  const free = await freeBytes(workBase);
  if (free >= minFreeDiskBytes) return;
  throw new InvocationError(
    "RESOURCE_EXHAUSTED",
    `Insufficient disk space to execute the tool: ${free} bytes are free, ${minFreeDiskBytes} are needed`,
  );
}

async function freeBytes(directory: string): Promise<number> {
  const { bavail, bsize } = await statfs(directory);
  return bavail * bsize;
}

async function prepare(
  parts: InvokerParts,
  tool: ToolEntry,
  profile: Profile,
): Promise<PreparedTool> {
  const runner = parts.runners.get(tool.runtime);
  if (runner === undefined) throw new Error(`no runner for runtime "${tool.runtime}"`);
  return runner.prepare(tool, profile);
}

async function acquire(
  parts: InvokerParts,
  { mounts, environment, memory }: PreparedTool,
  profile: Profile,
  signal: AbortSignal,
): Promise<Sandbox> {
  const request = { profile, memoryBound: memory.bound, mounts, environment };
  return parts.backend.acquire(request, signal);
}

/** Everything that is not an answer yet becomes one that says nothing of the inside; the log has the cause. */
function asInvocationError(error: unknown): InvocationError {
  if (error instanceof InvocationError) return error;
  if (error instanceof SandboxError) {
    return new InvocationError("SANDBOX_FAILED", "The sandbox could not be started", {
      cause: error,
    });
  }
  if (error instanceof StoreError) {
    return new InvocationError("ARTIFACT_ERROR", error.message, { cause: error });
  }
  return new InvocationError("INTERNAL_ERROR", "The worker could not run the tool", {
    cause: error,
  });
}
