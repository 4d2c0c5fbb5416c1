/**
 * The invoker: one call from a decoded request to its outcome, from top to bottom.
 */
import type { ArtifactScope } from "../artifacts/store.ts";
import type { ToolEntry } from "../manifest/manifest.ts";
import type { LimitName, LimitReached } from "../protocol/resource-limits.ts";
import type { Answer, Caller, Invocation } from "../protocol/invocation.ts";
import { maxMessageBytes } from "../protocol/limits.ts";
import { requireSendable } from "../protocol/messages/response.ts";
import { type StagedArtifact, runnerArgs } from "../runners/runner.ts";
import { NotGrantedError } from "../sandbox/host-access.ts";
import type { Profile } from "../sandbox/profile.ts";
import type { Execution, ExitReport, Sandbox } from "../sandbox/sandbox.ts";
import type { WorkDir } from "../sandbox/work/work-dir.ts";
import type { Starts, ToolSandbox } from "../pool/starts.ts";
import type { JsonObject } from "../support/json/json.ts";
import { withTimeout } from "../support/timeout.ts";
import { logEvent } from "../telemetry/log-event.ts";
import type { EgressCounts } from "../telemetry/metrics/egress-counts.ts";
import { type CallStore, auditedStore } from "./audit/audited-store.ts";
import { type CapacityParts, leaseSlot, priorityOf, requireFreeDisk } from "./slots/capacity.ts";
import { type CheckedOutput, checkOutputs } from "./steps/check-outputs.ts";
import { Outputs, noOutputs, saveOutputs } from "./steps/collect.ts";
import { followConnections } from "./steps/follow-connections.ts";
import type { CallContext, Invoker } from "./call-context.ts";
import { CallRecord } from "./call-record.ts";
import { CallResources } from "./slots/call-resources.ts";
import { endingBy } from "./ending.ts";
import {
  type CallTimes,
  TimeLimitReached,
  remainingLimitMs,
  savingLimitMs,
  toolDeadlineMs,
} from "./limits.ts";
import { type AdmitParts, type AdmittedCall, admit } from "./steps/admit.ts";
import type { CallSlot } from "./slots/call-slot.ts";
import { checkResult } from "./steps/check-schemas.ts";
import { type CallGateway, type Gateways, noGateway, runnerGateway } from "./steps/gateway.ts";
import { notAvailable } from "./steps/resolve.ts";
import { type ToolLogs, endOfOutput, followOutput, logOutput } from "./steps/output-log.ts";
import { logProgram } from "./programs/program.ts";
import { readResult } from "./steps/result.ts";
import { runToExit } from "./steps/run-to-exit.ts";
import { stageArtifacts } from "./steps/stage.ts";
import { streamOutput } from "./programs/streamed-output.ts";
import type { ArtifactLimits, Transfers } from "./steps/transfers.ts";

/** Dependencies of the invoker; `wiring/calls.ts` wires them. */
export interface InvokerParts extends AdmitParts, CapacityParts {
  readonly starts: Pick<Starts, "acquire" | "disposeLater">;
  readonly store: CallStore;
  readonly scopeOf: (caller: Caller) => ArtifactScope;
  readonly artifactLimits: ArtifactLimits;
  readonly transfers: Transfers;
  readonly toolLogs: ToolLogs;
  readonly egress: Pick<EgressCounts, "of">;
  readonly gateways: Gateways;
}

export function createInvoker(parts: InvokerParts): Invoker {
  let callsTooOld = 0;
  return {
    async invoke(invocation, context) {
      const startMs = parts.clock.monotonicMs();
      const record = new CallRecord(context.follower);
      const store = auditedStore(parts.store, context.audit);
      const ending = await run({ ...parts, store }, invocation, context, record).then(
        (success) => ({ kind: "success", ...success }) as const,
        (error: unknown) => endingBy(error, context),
      );
      if (ending.kind === "timeout" && "age" in ending) {
        logEvent(context.log, "call.too_old", { ...ending.age, total: ++callsTooOld });
      }
      const executionTimeMs = Math.round(parts.clock.monotonicMs() - startMs);
      const { execution, started, idempotent } = record;
      return { ...ending, executionTimeMs, execution, started, idempotent };
    },
  };
}

type Success = Pick<Extract<Answer, { kind: "success" }>, "toolResult" | "createdArtifacts">;

async function run(
  parts: InvokerParts,
  request: Invocation,
  context: CallContext,
  record: CallRecord,
): Promise<Success> {
  const { signal: shutdown, cancelSignal = shutdown, log, onStatus, claimed } = context;
  const signal = AbortSignal.any([shutdown, cancelSignal]);
  parts.disk.sampleAhead();
  const mayHaveStarted = claimed?.mayHaveStarted ?? false;
  const caller = context.isInner === true ? "programmatic" : "direct";
  const admitted = await admit(parts, request, { caller, mayHaveStarted }, record, signal);
  await using held = new CallResources(parts.starts);
  held.use(admitted.code);
  const { invocation, tool, profile, times, program } = admitted;
  logProgram(program, log);

  record.enter("queue");
  const priority = priorityOf(invocation, context);
  const slot = await leaseSlot(parts, tool, times, { ...context, signal, priority });
  held.useSlot(slot);
  await requireFreeDisk(parts);

  record.enter("acquire");
  const scope = parts.scopeOf(invocation.caller);
  const acquired = held.use(await acquire(parts, tool, profile, signal));
  const { sandbox, startMode } = acquired;
  const { workDir } = sandbox;
  record.enter("stage");
  const { preloaded, references } = invocation;
  logEvent(log, "call.staging_inputs", { preloaded: preloaded.size, references: references.size });
  const artifacts = await stage(parts, { invocation, workDir, scope, times }, signal);
  const inside = {
    tools: acquired.tool.toolsPath,
    locate: (path: string) => sandbox.locate(path),
    gateway: runnerGateway(tool, invocation, sandbox),
  };
  const deadlineMs = toolDeadlineMs(times, parts.clock.nowMs());
  const bounds = { maxResultBytes: maxMessageBytes, deadlineMs };
  const args = runnerArgs(tool, record.traced(invocation), artifacts, inside, bounds);
  await claimed?.claim.begin(tool.idempotent, signal);
  signal.throwIfAborted();
  const limitMs = remainingLimitMs(times, parts.clock.nowMs());
  if (limitMs <= 0) throw new TimeLimitReached();
  record.enter("run");
  record.begin();
  const execution = await start(parts, acquired, JSON.stringify(args), { limitMs, signal });
  // The pipe holds what came before.
  const status = held.use(workDir.readStatuses(onStatus));
  using _connections = followConnections(
    sandbox.connections,
    () => parts.egress.of(tool.name),
    context.audit,
  );
  const { statusBytes } = profile.limits;
  status.bound(statusBytes, (peak) =>
    execution.end({ limit: "statusBytes", bound: statusBytes, peak }),
  );
  const call = { ...admitted, context, record, slot, execution, deadlineMs };
  await using gateway = openGateway(parts, call);
  const { backend, enforcement, unenforced } = sandbox;
  const facts = {
    profile: profile.name,
    backend,
    start: startMode,
    limitMs,
    enforcement,
    unenforced,
  };
  logEvent(log, "tool.started", facts);
  if (unenforced.includes("isolation")) {
    logEvent(log, "tool.not_isolated", { profile: profile.name, backend });
  }
  logOutput(execution, log, parts.toolLogs);
  followOutput(execution, context.follower?.printed);
  using streamed = program?.isStreamed === true ? streamOutput(execution, onStatus) : undefined;
  const { cause, report } = await runToExit(execution, limitMs, shutdown, cancelSignal);
  const { report: calls, ending } = await gateway.close();
  status.finish(report.ending !== undefined);
  held.ending = report.ending;
  streamed?.[Symbol.dispose]();
  const output = endOfOutput(report, parts.toolLogs);
  const forCaller = parts.toolLogs.to === "caller" ? output : undefined;
  record.ended(profile, acquired, limitMs, { ...report, calls, output: forCaller });
  const ended = { ...report, stdout: output?.stdout, stderr: output?.stderr };
  logEvent(log, "tool.ended", { report: ended, droppedStatusLines: status.droppedLines });
  record.enter("collect");
  if (cause === "time-limit") throw new TimeLimitReached();
  if (cause === "cancelled") throw cancelSignal.reason;
  if (ending !== undefined) throw ending;

  const exceeded =
    report.exceeded ?? reached(acquired.tool.boundReached?.(report), sandbox, report);
  if (exceeded !== undefined) record.exceeded(exceeded);
  const { store, clock, artifactLimits, transfers } = parts;
  // Opens the files while the result is read.
  await using outputs =
    report.ending === undefined ? new Outputs(workDir, artifactLimits.maxOutputs) : noOutputs;
  const result = await readResult(workDir, { ...report, exceeded }, sandbox.limits, signal);
  await checkResult(parts, tool, result.value, signal);
  const limits = { ...artifactLimits, ...profile.limits };
  const rules = { scope, limits, log };
  const checked = checkOutputs(await outputs.left(), result.outputs, rules);
  requireAnswerable(invocation.id, result.value, checked, record);
  const savingMs = savingLimitMs(times, clock.nowMs());
  const collection = { ...rules, store, transfers, clock, limitMs: savingMs };
  const createdArtifacts = await saveOutputs(checked, collection, signal);
  record.collected(createdArtifacts);
  return { toolResult: result.value, createdArtifacts };
}

/**
 * Checks the size of the answer before any output is saved. Throws InvocationError
 * `RESOURCE_EXHAUSTED`.
 */
function requireAnswerable(
  id: string,
  toolResult: JsonObject,
  outputs: readonly CheckedOutput[],
  record: CallRecord,
): void {
  if (outputs.length === 0) return;
  const longest = Number.MAX_SAFE_INTEGER;
  const createdArtifacts = outputs.map((output) => ({ ...output, version: longest }));
  const execution = record.executionWith(outputs);
  const answer = { kind: "success", toolResult, createdArtifacts, execution } as const;
  requireSendable(id, { ...answer, executionTimeMs: longest });
}

/** A limit that the interpreter reports as the cause of its exit. */
function reached(
  limit: LimitName | undefined,
  { limits }: Pick<Sandbox, "limits">,
  { usage }: ExitReport,
): LimitReached | undefined {
  if (limit === undefined) return undefined;
  const peak = limit === "memoryBytes" ? usage.peakMemoryBytes : undefined;
  return { limit, bound: limits[limit], peak };
}

interface GatewayParts extends AdmittedCall {
  readonly context: CallContext;
  readonly record: CallRecord;
  readonly slot: CallSlot;
  readonly execution: Execution;
  readonly deadlineMs: number;
}

/** The gateway of a tool that may call others. */
function openGateway(
  { gateways }: InvokerParts,
  { tool, execution, record, ...call }: GatewayParts,
): CallGateway {
  const { gateway: channel } = execution;
  if (channel === undefined) return noGateway;
  return gateways.open({
    ...call,
    tool,
    channel,
    onBegin: async ({ idempotent }) => {
      record.called(idempotent);
      if (!idempotent) await call.context.claimed?.claim.keep();
    },
    onAbuse: () => void execution.stop(0).catch(() => undefined),
  });
}

interface Staging {
  readonly invocation: Invocation;
  readonly workDir: WorkDir;
  readonly scope: ArtifactScope;
  readonly times: CallTimes;
}

/** Loads the inputs within the tool's time limit, so that a hanging store frees the slot. */
async function stage(
  { store, clock, disk, minFreeDiskBytes, artifactLimits: limits, transfers }: InvokerParts,
  { invocation, workDir, scope, times }: Staging,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, StagedArtifact>> {
  if (invocation.preloaded.size + invocation.references.size === 0) return new Map();
  const over = AbortSignal.timeout(Math.max(0, remainingLimitMs(times, clock.nowMs())));
  const diskBytes = (await disk.bytes()) - minFreeDiskBytes;
  try {
    const origin = { store, scope, limits, diskBytes, transfers };
    return await stageArtifacts(invocation, workDir, origin, AbortSignal.any([signal, over]));
  } catch (error) {
    if (over.aborted && !signal.aborted) throw new TimeLimitReached();
    throw error;
  }
}

/** Starts the command within the tool's time limit: an engine of containers may hang. */
async function start(
  { clock }: InvokerParts,
  acquired: ToolSandbox,
  args: string,
  { limitMs, signal }: { readonly limitMs: number; readonly signal: AbortSignal },
): Promise<Execution> {
  return withTimeout(limitMs, clock, signal, async (over) => {
    try {
      return await acquired.start(args, over);
    } catch (error) {
      if (over.aborted && !signal.aborted) throw new TimeLimitReached();
      throw error;
    }
  });
}

/** Maps a denied host resource to `TOOL_NOT_AVAILABLE`. */
async function acquire(
  { starts }: InvokerParts,
  tool: ToolEntry,
  profile: Profile,
  signal: AbortSignal,
): Promise<ToolSandbox> {
  try {
    return await starts.acquire(tool, profile, signal);
  } catch (error) {
    if (!(error instanceof NotGrantedError)) throw error;
    const options = { cause: error, op: "select_backend" } as const;
    throw notAvailable(tool.name, error.publicReason, options);
  }
}
