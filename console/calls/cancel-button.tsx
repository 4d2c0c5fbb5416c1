/** Cancels a running call. */
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { CallView } from "../../worker/console/api.ts";
import { cancelCall, messageOf } from "../server/requests.ts";

export function CancelButton({ call }: { readonly call: CallView }): VNode {
  const [problem, setProblem] = useState<string | null>(null);
  const [isSent, setIsSent] = useState(false);
  const isCancelled = isSent || call.isCancelled;
  const cancel = (): void => {
    setProblem(null);
    setIsSent(true);
    cancelCall(call.id).catch((error: unknown) => {
      setIsSent(false);
      setProblem(messageOf(error));
    });
  };
  return (
    <>
      <button
        type="button"
        disabled={isCancelled}
        aria-label={`Cancel call ${call.number} of ${call.tool ?? "an unknown tool"}`}
        onClick={cancel}
      >
        {isCancelled ? "Cancelling…" : "Cancel"}
      </button>
      {problem !== null && (
        <span role="alert" class="bad-text">
          {problem}
        </span>
      )}
    </>
  );
}
