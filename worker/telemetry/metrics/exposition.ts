/**
 * Writes metrics in Prometheus' text format, or that of OpenMetrics: the one file that knows the
 * client library.
 */
import {
  Counter,
  Gauge,
  type GaugeConfiguration,
  type MetricType,
  Registry,
  type RegistryContentType,
  openMetricsContentType,
} from "prom-client";
import type { MakePage } from "../health.ts";
import { qualityOf } from "./accept.ts";
import { type MetricName, type Sample, type Samples, metrics } from "./catalog.ts";
import type { MetricFacts } from "./catalog/facts.ts";
import type { Exemplar, HistogramValue } from "./histogram.ts";

/**
 * Makes pages of the metrics as they are at a moment, in text unless the reader prefers
 * OpenMetrics. Rejects where one cannot be read.
 */
export function exposition(samples: Samples): MakePage {
  // For each format its own: that of OpenMetrics renames the counters that it writes.
  const plain = new Registry<RegistryContentType>();
  const open = new Registry<RegistryContentType>();
  open.setContentType(openMetricsContentType);
  for (const registry of [plain, open])
    for (const name of Object.keys(metrics) as MetricName[])
      register(registry, name, samples[name]);
  return async (accept = "") => {
    const isOpen = qualityOf(openMetrics, accept) > qualityOf(plainText, accept);
    const registry = isOpen ? open : plain;
    return { contentType: registry.contentType, text: await registry.metrics() };
  };
}

/** The format that has exemplars. */
const openMetrics = "application/openmetrics-text";
const plainText = "text/plain";

function register(
  registry: Registry<RegistryContentType>,
  name: MetricName,
  read: Samples[MetricName],
): void {
  const { type, labels, help }: MetricFacts = metrics[name];
  const options = { name, help, labelNames: [...labels], registers: [registry] };
  if (type === "histogram") {
    new ReadHistogram(options, read as ReadHistograms);
    return;
  }
  const collect = async (): Promise<void> => {
    const samples = (await read()) as readonly Sample[];
    // At one go: pages may be asked for at the same time.
    metric.reset();
    // The library sets a metric without labels to 0, which would be a value.
    if (samples.length === 0) metric.remove({});
    for (const { labels, value } of samples) metric.inc(labels, value);
  };
  const metric =
    type === "counter" ? new Counter({ ...options, collect }) : new Gauge({ ...options, collect });
}

type ReadHistograms = () =>
  readonly Sample<HistogramValue>[] | Promise<readonly Sample<HistogramValue>[]>;

/** A histogram whose numbers are kept elsewhere: the library's own takes observations only. */
class ReadHistogram extends Gauge {
  readonly #name: string;
  readonly #read: ReadHistograms;

  constructor(options: GaugeConfiguration<string>, read: ReadHistograms) {
    super(options);
    this.#name = options.name;
    this.#read = read;
  }

  override async get(): ReturnType<Gauge["get"]> {
    const samples = await this.#read();
    const values = samples.flatMap((sample) => seriesOf(this.#name, sample));
    // The library declares a number, and has the word.
    return { ...(await super.get()), type: "histogram" as unknown as MetricType, values };
  }
}

/** The series of a histogram in the text format: a bucket holds what the smaller ones hold. */
function seriesOf(
  name: string,
  { labels, value: { bounds, counts, sum, exemplars } }: Sample<HistogramValue>,
) {
  let count = 0;
  const buckets = counts.map((own, index) => {
    count += own;
    const le = index < bounds.length ? String(bounds[index]) : "+Inf";
    const exemplar = exemplarOf(exemplars[index]);
    return { metricName: `${name}_bucket`, labels: { ...labels, le }, value: count, ...exemplar };
  });
  return [
    ...buckets,
    { metricName: `${name}_sum`, labels, value: sum },
    { metricName: `${name}_count`, labels, value: count },
  ];
}

/** As the library writes it, and only in OpenMetrics. */
function exemplarOf(known: Exemplar | undefined) {
  if (known === undefined) return undefined;
  const { traceId, value, epochSeconds: timestamp } = known;
  return { exemplar: { labelSet: { trace_id: traceId }, value, timestamp } };
}
