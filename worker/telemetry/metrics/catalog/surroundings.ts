/**
 * Metrics of what a worker depends on, and of its process, by name.
 */
import type { MetricFacts } from "./facts.ts";

export const surroundingMetrics = {
  str_artifact_operations_total: {
    type: "counter",
    labels: ["store", "operation", "outcome"],
    help: "Operations of calls on the artifact store.",
  },
  str_artifact_operation_duration_seconds: {
    type: "histogram",
    labels: ["store", "operation"],
    help: "Time of these operations; that of an open ends before its content moves.",
  },
  str_artifact_bytes_total: {
    type: "counter",
    labels: ["store", "direction"],
    help: "Bytes of artifacts that calls have opened or saved.",
  },
  str_artifact_cache_hits_total: {
    type: "counter",
    labels: [],
    help: "Artifacts that were read from the local cache.",
  },
  str_artifact_cache_misses_total: {
    type: "counter",
    labels: [],
    help: "Artifacts that the local cache had to get from the store, or does not keep.",
  },
  str_broker_connected: {
    type: "gauge",
    labels: [],
    help: "1 while there is a connection to the broker.",
  },
  str_broker_connections_total: {
    type: "counter",
    labels: [],
    help: "Connections to the broker that were made; all but the first are reconnects.",
  },
  str_broker_unconfirmed_messages: {
    type: "gauge",
    labels: [],
    help: "Messages that wait for the broker's confirmation.",
  },
  str_answers_unroutable_total: {
    type: "counter",
    labels: [],
    help: "Answers without a receiver at the broker.",
  },
  str_group_conflicts: {
    type: "gauge",
    labels: [],
    help: "Conflicts with other workers, of another group or with another store, that make calls run twice.",
  },
  str_ready: {
    type: "gauge",
    labels: [],
    help: "1 while `/readyz` answers 200.",
  },
  str_warnings: {
    type: "gauge",
    labels: [],
    help: "Warnings of `/readyz`.",
  },
  str_tools: {
    type: "gauge",
    labels: ["state"],
    help: "Tools of the manifest in force.",
  },
  str_manifest_info: {
    type: "gauge",
    labels: ["revision"],
    help: "1 with the revision of the manifest in force, which is the same in workers with one manifest.",
  },
  str_manifest_loads_total: {
    type: "counter",
    labels: [],
    help: "Manifests that came into force, the first included.",
  },
  str_manifest_usable: {
    type: "gauge",
    labels: [],
    help: "0 while the manifest file cannot be used and the last good one is in force.",
  },
  str_environments: {
    type: "gauge",
    labels: ["state"],
    help: "Environments of packages that tools of the manifest want.",
  },
  str_spans_dropped_total: {
    type: "counter",
    labels: [],
    help: "Spans of traces that were lost: too many waited, or the collector did not take them.",
  },
  str_event_loop_delay_seconds: {
    type: "histogram",
    labels: [],
    help: "How late timers of the worker fire. Four are due each second; a stall counts for each.",
  },
  str_build_info: {
    type: "gauge",
    labels: ["version", "node"],
    help: "1 with the version of the worker and that of its Node.",
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
