/**
 * Admission of a call before it takes a slot. A new check is one more entry of the chain.
 */
import type { CallerKind, ToolEntry } from "../../manifest/manifest.ts";
import type { Invocation } from "../../protocol/invocation.ts";
import type { Profile } from "../../sandbox/profile.ts";
import type { Clock } from "../../support/clock.ts";
import { requireFresh } from "../age.ts";
import { requireRepeatable } from "../claims/redelivery.ts";
import type { CallRecord } from "../call-record.ts";
import { type CallTimes, type TimeBounds, callTimes } from "../limits.ts";
import { type ArgumentParts, checkArguments } from "./check-schemas.ts";
import { type Program, programOf } from "../programs/program.ts";
import { type ResolveParts, requireCaller, resolveProfile, resolveTool } from "./resolve.ts";

/** Dependencies of {@link admit}. */
export interface AdmitParts extends ResolveParts, ArgumentParts {
  readonly times: TimeBounds;
  readonly clock: Clock;
  /** Keeps the code of a tool that may change at any time; undefined where it needs no hold. */
  readonly holdCode?: (tool: ToolEntry) => Disposable | undefined;
}

/** A call with its resolved tool, profile and times. */
export interface AdmittedCall {
  readonly invocation: Invocation;
  readonly tool: ToolEntry;
  readonly profile: Profile;
  readonly times: CallTimes;
  /** What the call brings to run; undefined for a tool with code of its own. */
  readonly program?: Program;
}

/** An admitted call; its owner disposes `code` when the call has ended. */
export interface HeldCall extends AdmittedCall {
  readonly code: Disposable;
}

/** What the worker knows of a call besides its request. */
export interface CallOrigin {
  readonly caller: CallerKind;
  readonly mayHaveStarted: boolean;
}

interface Candidate extends AdmittedCall, Pick<CallOrigin, "caller"> {
  /** Epoch milliseconds. */
  readonly nowMs: number;
}

/** Throws InvocationError or CallTooOld to refuse the call. */
type AdmissionCheck = (call: Candidate) => void | Promise<void>;

const chain: readonly AdmissionCheck[] = [
  ({ tool, caller }) => requireCaller(tool, caller),
  ({ tool, invocation }) => {
    if (invocation.isByTool === true) requireCaller(tool, "programmatic");
  },
  ({ times, invocation, nowMs }) => requireFresh(times, invocation, nowMs),
];

/**
 * The invocation is the one to run, with checked arguments; the tool is what runs a program. Throws
 * InvocationError `TOOL_NOT_AVAILABLE`, `NOT_REPEATED` or `INVALID_REQUEST`, CallTooOld, or the
 * signal's reason.
 */
export async function admit(
  parts: AdmitParts,
  invocation: Invocation,
  { caller, mayHaveStarted }: CallOrigin,
  record: CallRecord,
  signal: AbortSignal,
): Promise<HeldCall> {
  const tool = resolveTool(parts, invocation.toolName, mayHaveStarted);
  // Before the first wait, as its toolset may be exchanged or removed while the call waits.
  using held = new DisposableStack();
  held.use(parts.holdCode?.(tool));
  record.resolved(tool);
  // Before all other refusals: the call may have had its effect.
  requireRepeatable(tool, mayHaveStarted);
  const profile = resolveProfile(parts, tool, invocation);
  record.under(profile);
  const times = callTimes(tool, invocation, parts.times);
  const call = { invocation, tool, profile, times };
  for (const check of chain) await check({ ...call, caller, nowMs: parts.clock.nowMs() });
  const checked = await checkArguments(parts, tool, invocation, signal);
  return { ...call, invocation: checked, ...programOf(tool, checked), code: held.move() };
}
