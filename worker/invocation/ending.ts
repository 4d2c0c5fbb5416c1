/**
 * The outcome of a call whose run threw.
 */
import { StoreError } from "../artifacts/store.ts";
import { InvocationError } from "../protocol/errors.ts";
import type { InvocationOutcome } from "../protocol/invocation.ts";
import { SandboxError } from "../sandbox/sandbox.ts";
import { CallTooOld } from "./age.ts";
import { cancelledBy } from "./cancellation/cancels.ts";
import { NotStartedError } from "./claims/claims.ts";
import type { CallContext } from "./call-context.ts";
import { TimeLimitReached } from "./limits.ts";

/** An outcome without the facts that every outcome has. */
type Ending = Bare<Exclude<InvocationOutcome, { kind: "success" }>>;

type Bare<Outcome> = Outcome extends unknown
  ? Omit<Outcome, "executionTimeMs" | "execution" | "started" | "idempotent">
  : never;

/** Maps the error of a run to its outcome. */
export function endingBy(error: unknown, context: CallContext): Ending {
  if (error instanceof CallTooOld) return { kind: "timeout", age: error.age } as const;
  if (error instanceof TimeLimitReached) return { kind: "timeout" } as const;
  if (error instanceof NotStartedError) return { kind: "cancelled", reason: "elsewhere" } as const;
  if (isStopped(error, context)) {
    const remainingArtifacts = error instanceof InvocationError ? error.remainingArtifacts : [];
    const { cancelSignal } = context;
    const reason = cancelSignal?.aborted === true ? cancelledBy(cancelSignal) : "shutdown";
    return { kind: "cancelled", reason, remainingArtifacts } as const;
  }
  return { kind: "error", error: asInvocationError(error) } as const;
}

/** Whether a signal caused the error. A failure found before the abort stays the answer. */
function isStopped(
  error: unknown,
  { signal, waitSignal, cancelSignal = signal }: CallContext,
): boolean {
  const ends = signal.aborted || cancelSignal.aborted;
  if (ends && !(error instanceof InvocationError)) return true;
  const signals = [signal, waitSignal, cancelSignal];
  return signals.some(({ aborted, reason }) => aborted && hasCause(error, reason));
}

function hasCause(error: unknown, cause: unknown): boolean {
  return error === cause || (error instanceof Error && hasCause(error.cause, cause));
}

/** Errors of packages become publishable ones; the log has the cause. */
function asInvocationError(error: unknown): InvocationError {
  if (error instanceof InvocationError) return error;
  if (error instanceof SandboxError) {
    const reason = error.isEgress ? ("egress" as const) : undefined;
    const what = error.isEgress
      ? "The network of the sandbox could not be made"
      : "The sandbox could not be started";
    return new InvocationError("SANDBOX_FAILED", what, { cause: error, reason });
  }
  if (error instanceof StoreError) {
    return new InvocationError("ARTIFACT_ERROR", error.message, { cause: error });
  }
  return new InvocationError("INTERNAL_ERROR", "The worker could not run the tool", {
    cause: error,
  });
}
