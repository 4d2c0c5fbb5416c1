/**
 * Metrics of sandboxes and what runs in them, by name.
 */
import type { MetricFacts } from "./facts.ts";

export const sandboxMetrics = {
  str_sandboxes_started_total: {
    type: "counter",
    labels: ["tool", "start"],
    help: "Sandboxes that have run a call.",
  },
  str_tool_cpu_seconds_total: {
    type: "counter",
    labels: ["tool"],
    help: "Processor time of calls in their sandboxes, in seconds, where it is measured.",
  },
  str_limits_reached_total: {
    type: "counter",
    labels: ["tool", "limit"],
    help: "Calls that a limit of their sandbox has ended.",
  },
  str_limits_unenforced_total: {
    type: "counter",
    labels: ["limit"],
    help: "Calls that have run without a protection of their profile, since the host lacks it.",
  },
  str_idle_sandboxes: {
    type: "gauge",
    labels: ["tool", "profile"],
    help: "Sandboxes that wait for a call.",
  },
  str_idle_sandboxes_wanted: {
    type: "gauge",
    labels: ["tool", "profile"],
    help: "Sandboxes that should wait for a call.",
  },
  str_idle_memory_bytes: {
    type: "gauge",
    labels: ["tool", "profile"],
    help: "Memory of sandboxes that wait, and of their template, in bytes.",
  },
  str_idle_hits_total: {
    type: "counter",
    labels: ["tool", "profile"],
    help: "Calls that took a sandbox that waited.",
  },
  str_idle_misses_total: {
    type: "counter",
    labels: ["tool", "profile"],
    help: "Calls that found none.",
  },
  str_idle_refills_total: {
    type: "counter",
    labels: ["tool", "profile"],
    help: "Sandboxes that were made to wait.",
  },
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
} as const satisfies Readonly<Record<string, MetricFacts>>;
