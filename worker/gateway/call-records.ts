/**
 * What is kept of each call of a program: no arguments and no results.
 */
import type { Clock } from "../support/clock.ts";
import { type GatewayCode, GatewayError, type ToolOp } from "./gateway.ts";

/** A call that ended. */
export interface ToolCallRecord {
  readonly callId: string;
  readonly toolId: string;
  /** Undefined where none ran it, or none is known. */
  readonly backend: string | undefined;
  /** Epoch milliseconds. */
  readonly startedAtMs: number;
  readonly durationMs: number;
  readonly outcome: "ok" | GatewayCode;
  /** The part that failed. */
  readonly op: ToolOp | undefined;
  readonly depth: number;
  /** Of compact JSON. */
  readonly argsBytes: number;
  readonly resultBytes: number;
}

/** What a record is about. */
type RecordedCall = Pick<ToolCallRecord, "callId" | "toolId" | "depth" | "argsBytes">;

/** How a call ended. */
export type CallOutcome = Pick<ToolCallRecord, "backend"> &
  ({ readonly error: GatewayError } | { readonly resultBytes: number });

/** A record of a call that runs. */
export interface RunningRecord {
  readonly call: RecordedCall;
  /** Hands the record on. Call it once. */
  end(outcome: CallOutcome): void;
}

/** Starts a record, which `onCall` gets at the end of the call. */
export function startRecord(
  call: RecordedCall,
  clock: Clock,
  onCall: ((record: ToolCallRecord) => void) | undefined,
): RunningRecord {
  const startedAtMs = clock.nowMs();
  const startMs = clock.monotonicMs();
  return {
    call,
    end(outcome) {
      const durationMs = clock.monotonicMs() - startMs;
      onCall?.({ ...call, startedAtMs, durationMs, ...outcomeFields(outcome) });
    },
  };
}

function outcomeFields(
  outcome: CallOutcome,
): Pick<ToolCallRecord, "backend" | "outcome" | "op" | "resultBytes"> {
  if (!("error" in outcome)) return { ...outcome, outcome: "ok", op: undefined };
  const { backend, error } = outcome;
  const { code, op } = error;
  return { backend, outcome: code, op, resultBytes: 0 };
}

/** The error in the record of an aborted call. */
export function cancelled({ reason }: AbortSignal): GatewayError {
  if (reason instanceof GatewayError) return reason;
  return new GatewayError("CANCELLED", "execute", "The call was cancelled", { cause: reason });
}
