/**
 * The artifact store of calls, whose operations are counted.
 */
import type { Clock } from "../support/clock.ts";
import type {
  StoreCounts,
  StoreOperation,
  StoreOutcome,
} from "../telemetry/metrics/store-counts.ts";
import { type CallStore, endOf } from "./audit/audited-store.ts";

/** Counts each operation with its time, and the bytes of versions that are opened or saved. */
export function countedStore(
  store: CallStore,
  counts: StoreCounts,
  clock: Pick<Clock, "monotonicMs">,
): CallStore {
  async function counted<Result>(
    operation: StoreOperation,
    running: Promise<Result>,
    signal: AbortSignal,
  ): Promise<Result> {
    const beganMs = clock.monotonicMs();
    const ended = (outcome: StoreOutcome): void =>
      counts.ended(operation, outcome, clock.monotonicMs() - beganMs);
    try {
      const result = await running;
      ended("ok");
      return result;
    } catch (error) {
      ended(outcomeOf(error, signal));
      throw error;
    }
  }
  return {
    async open(scope, reference, signal, accept) {
      const opening = store.open(scope, reference, signal, accept);
      const opened = await counted("open", opening, signal);
      counts.moved("read", opened.sizeBytes);
      return opened;
    },
    async save(scope, filename, source, metadata, signal) {
      const saving = store.save(scope, filename, source, metadata, signal);
      const saved = await counted("save", saving, signal);
      counts.moved("written", saved.sizeBytes);
      return saved;
    },
    deleteVersion: (scope, filename, saved, signal) =>
      counted("delete", store.deleteVersion(scope, filename, saved, signal), signal),
  };
}

function outcomeOf(error: unknown, signal: AbortSignal): StoreOutcome {
  const { outcome, reason } = endOf(error, signal);
  if (outcome === "cancelled") return outcome;
  return reason === "unavailable" ? "failed" : "refused";
}
