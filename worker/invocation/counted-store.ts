/**
 * The artifact store of calls, whose operations are counted.
 */
import type { Clock } from "../support/clock.ts";
import type { StoreCounts, StoreOperation } from "../telemetry/metrics/store-counts.ts";
import type { CallStore } from "./audit/audited-store.ts";

/** Counts each operation with its time, and the bytes of versions that are opened or saved. */
export function countedStore(
  store: CallStore,
  counts: StoreCounts,
  clock: Pick<Clock, "monotonicMs">,
): CallStore {
  async function counted<Result>(
    operation: StoreOperation,
    running: Promise<Result>,
  ): Promise<Result> {
    const beganMs = clock.monotonicMs();
    const ended = (outcome: "ok" | "failed"): void =>
      counts.ended(operation, outcome, clock.monotonicMs() - beganMs);
    try {
      const result = await running;
      ended("ok");
      return result;
    } catch (error) {
      ended("failed");
      throw error;
    }
  }
  return {
    async open(...request) {
      const opened = await counted("open", store.open(...request));
      counts.moved("read", opened.sizeBytes);
      return opened;
    },
    async save(...request) {
      const saved = await counted("save", store.save(...request));
      counts.moved("written", saved.sizeBytes);
      return saved;
    },
    deleteVersion: (...request) => counted("delete", store.deleteVersion(...request)),
  };
}
