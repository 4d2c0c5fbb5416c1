/**
 * The metrics of a worker: names and units by Prometheus' conventions, labels and meanings.
 */
import { callMetrics } from "./catalog/calls.ts";
import type { MetricLabel } from "./catalog/labels.ts";
import { sandboxMetrics } from "./catalog/sandboxes.ts";
import { surroundingMetrics } from "./catalog/surroundings.ts";
import type { HistogramValue } from "./histogram.ts";

/** Every metric, by name, in the order of the page. */
export const metrics = { ...callMetrics, ...sandboxMetrics, ...surroundingMetrics };

export type MetricName = keyof typeof metrics;

/** A value of a metric, with a value for each of its labels. */
export interface Sample<Value = number> {
  readonly labels: Readonly<Partial<Record<MetricLabel, string>>>;
  readonly value: Value;
}

/** The value that a metric has. */
type ValueOf<Name extends MetricName> = (typeof metrics)[Name]["type"] extends "histogram"
  ? HistogramValue
  : number;

/** Reads the present values of metrics. */
export type Samples<Name extends MetricName = MetricName> = {
  readonly [Each in Name]: () =>
    readonly Sample<ValueOf<Each>>[] | Promise<readonly Sample<ValueOf<Each>>[]>;
};

/** A metric without labels. */
export function only<Value>(value: Value): readonly Sample<Value>[] {
  return [{ labels: {}, value }];
}
