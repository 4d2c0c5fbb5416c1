/**
 * Metrics of calls, by name.
 */
import type { MetricFacts } from "./facts.ts";

export const callMetrics = {
  str_deliveries_received_total: {
    type: "counter",
    labels: [],
    help: "Messages that the broker has delivered, whatever they are.",
  },
  str_deliveries_settled_total: {
    type: "counter",
    labels: ["settlement"],
    help: "Deliveries that have ended, by their settlement; rejected ones are dead letters.",
  },
  str_deliveries_running: {
    type: "gauge",
    labels: [],
    help: "Deliveries between receipt and end.",
  },
  str_calls_total: {
    type: "counter",
    labels: ["tool", "profile", "outcome"],
    help: "Deliveries for served tools that have ended, and calls of them by other tools of this worker.",
  },
  str_calls_refused_total: {
    type: "counter",
    labels: ["outcome"],
    help: "Deliveries that have ended before their tool was known.",
  },
  str_call_duration_seconds: {
    type: "histogram",
    labels: ["tool"],
    help: "Time of calls from receipt to end; not of duplicate and requeued deliveries.",
  },
  str_call_step_duration_seconds: {
    type: "histogram",
    labels: ["step"],
    help: "Time of each step of calls, also of the one in which a call ends.",
  },
  str_slots: {
    type: "gauge",
    labels: ["queue"],
    help: "Calls that may run at once.",
  },
  str_slots_used: {
    type: "gauge",
    labels: ["queue"],
    help: "Calls that have a slot.",
  },
  str_slots_lent: {
    type: "gauge",
    labels: [],
    help: "Calls without their slot, which wait for tools that they have called.",
  },
  str_calls_waiting: {
    type: "gauge",
    labels: ["queue"],
    help: "Calls that wait for a slot.",
  },
} as const satisfies Readonly<Record<string, MetricFacts>>;
