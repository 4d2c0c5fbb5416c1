/**
 * The form of a metric in the catalogue.
 */
import type { MetricLabel } from "./labels.ts";

export type MetricType = "counter" | "gauge" | "histogram";

/** What a metric is, for the page and for its readers. */
export interface MetricFacts {
  readonly type: MetricType;
  /** Never of a user, a session, a task or a host: their number has no bound. */
  readonly labels: readonly MetricLabel[];
  readonly help: string;
}
