/**
 * Writes metrics in Prometheus' text format: the one file that knows its client library.
 */
import { Counter, Gauge, Registry } from "prom-client";
import type { Page } from "../health.ts";
import { type MetricFacts, type MetricName, type Samples, metrics } from "./catalog.ts";

/** Makes pages of the metrics as they are at a moment; rejects where one cannot be read. */
export function exposition(samples: Samples): () => Promise<Page> {
  const registry = new Registry();
  for (const name of Object.keys(metrics) as MetricName[]) register(registry, name, samples[name]);
  return async () => ({ contentType: registry.contentType, text: await registry.metrics() });
}

function register(registry: Registry, name: MetricName, read: Samples[MetricName]): void {
  const { type, labels, help }: MetricFacts = metrics[name];
  const options = { name, help, labelNames: [...labels], registers: [registry] };
  const collect = async (): Promise<void> => {
    const samples = await read();
    // At one go: pages may be asked for at the same time.
    metric.reset();
    for (const { labels, value } of samples) metric.inc(labels, value);
  };
  const metric =
    type === "counter" ? new Counter({ ...options, collect }) : new Gauge({ ...options, collect });
}
