/** Which calls of the list are shown. */
import type { CallView } from "../../worker/console/api.ts";

export interface CallFilter {
  /** Empty for every tool. */
  readonly tool: string;
  readonly outcome: "any" | "running" | "ok" | "failed";
  readonly isOwnOnly: boolean;
}

export const everyCall: CallFilter = { tool: "", outcome: "any", isOwnOnly: false };

export function filterCalls(calls: readonly CallView[], filter: CallFilter): readonly CallView[] {
  return calls.filter(
    (call) =>
      (filter.tool === "" || call.tool === filter.tool) &&
      (filter.outcome === "any" || outcomeClass(call) === filter.outcome) &&
      (!filter.isOwnOnly || call.isOwn),
  );
}

/** What a call's outcome means to its reader. */
export function outcomeClass(call: CallView): "running" | "ok" | "failed" {
  if (call.outcome === null) return "running";
  return call.outcome === "ok" ? "ok" : "failed";
}
