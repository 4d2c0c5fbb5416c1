/**
 * The metrics of a worker: names and units by Prometheus' conventions, labels and meanings.
 */

/** What a metric is, for the page and for its readers. */
export interface MetricFacts {
  readonly type: "counter" | "gauge";
  /** Never of a user, a session, a task or a host: their number has no bound. */
  readonly labels: readonly MetricLabel[];
  readonly help: string;
}

/** A label, by {@link metricLabels}. */
export type MetricLabel = keyof typeof metricLabels;

/** What labels have. */
export const metricLabels = {
  tool: "a tool of the manifest that has made a call with a network",
  verdict: "`allowed` or `refused`",
  direction: "`sent` or `received`, as the tool sees it",
} as const;

/** Every metric, by name. */
export const metrics = {
  str_egress_connections_total: {
    type: "counter",
    labels: ["tool", "verdict"],
    help: "Connections from sandboxes that were refused, or were allowed and have ended.",
  },
  str_egress_bytes_total: {
    type: "counter",
    labels: ["tool", "direction"],
    help: "Bytes of these connections.",
  },
  str_egress_open_connections: {
    type: "gauge",
    labels: ["tool"],
    help: "Connections from sandboxes that are open.",
  },
  str_egress_refused_names_total: {
    type: "counter",
    labels: ["tool"],
    help: "Names that sandboxes asked for and no rule allows, the first 200 of a sandbox once each.",
  },
  str_egress_refused_requests_total: {
    type: "counter",
    labels: ["tool"],
    help: "HTTP requests that were refused on connections whose requests are checked.",
  },
  process_cpu_seconds_total: {
    type: "counter",
    labels: [],
    help: "Processor time of the worker without its sandboxes, in seconds.",
  },
  process_resident_memory_bytes: {
    type: "gauge",
    labels: [],
    help: "Memory of the worker without its sandboxes, in bytes.",
  },
  process_open_fds: {
    type: "gauge",
    labels: [],
    help: "Open file descriptors of the worker.",
  },
  process_start_time_seconds: {
    type: "gauge",
    labels: [],
    help: "Start of the worker's process, in seconds since 1970.",
  },
} as const satisfies Readonly<Record<string, MetricFacts>>;

export type MetricName = keyof typeof metrics;

/** A value of a metric, with a value for each of its labels. */
export interface Sample {
  readonly labels: Readonly<Partial<Record<MetricLabel, string>>>;
  readonly value: number;
}

/** Reads the present values of metrics. */
export type Samples<Name extends MetricName = MetricName> = {
  readonly [Each in Name]: () => readonly Sample[] | Promise<readonly Sample[]>;
};
