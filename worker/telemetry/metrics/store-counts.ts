/**
 * Counts what calls do with their artifact store.
 */
import type { Samples } from "./catalog.ts";
import type { surroundingMetrics } from "./catalog/surroundings.ts";
import { Histogram } from "./histogram.ts";
import { Tally } from "./tally.ts";

export type StoreOperation = "open" | "save" | "delete";

/** `refused` for what the caller asked for and the store cannot give; `failed` is the store's. */
export type StoreOutcome = "ok" | "refused" | "cancelled" | "failed";

type StoreMetricName = Extract<
  keyof typeof surroundingMetrics,
  `str_artifact_operation${string}` | "str_artifact_bytes_total"
>;

/** The counts of the store of one kind. */
export class StoreCounts {
  /** Undefined until there is a store. */
  kind: string | undefined;
  readonly #ended = new Tally<"operation" | "outcome">();
  readonly #bytes = new Tally<"direction">();
  readonly #seconds = new Map<StoreOperation, Histogram>();

  /** An operation has ended after so many milliseconds. */
  ended(operation: StoreOperation, outcome: StoreOutcome, ms: number): void {
    this.#ended.add({ operation, outcome });
    const seconds = this.#seconds.get(operation) ?? new Histogram();
    this.#seconds.set(operation, seconds);
    seconds.observe(ms / 1000);
  }

  /** So many bytes go from the store to a call, or came from one. */
  moved(direction: "read" | "written", bytes: number): void {
    this.#bytes.add({ direction }, bytes);
  }

  readonly samples: Samples<StoreMetricName> = {
    str_artifact_operations_total: () => this.#labelled(this.#ended.samples()),
    str_artifact_operation_duration_seconds: () =>
      this.#labelled(
        Array.from(this.#seconds, ([operation, value]) => ({ labels: { operation }, value })),
      ),
    str_artifact_bytes_total: () => this.#labelled(this.#bytes.samples()),
  };

  #labelled<Labels, Value>(samples: readonly { readonly labels: Labels; readonly value: Value }[]) {
    const store = this.kind ?? "";
    return samples.map(({ labels, value }) => ({ labels: { store, ...labels }, value }));
  }
}
