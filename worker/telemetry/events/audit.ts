/**
 * Log events of the audit log.
 */
import type { LogEvent } from "./event.ts";

/** Events of the audit log, by name. */
export const auditEvents = {
  "audit.failed": {
    level: "error",
    message: "audit log cannot be written",
    facts: { err: "error", isRequired: "boolean" },
    when: "A line could not be written to [`AUDIT_LOG`](audit.md), once until it can. The worker tries again every second; lines wait in memory. Calls fail if `isRequired`. `/readyz` says so.",
    action: "Free disk space, or correct file and permissions by `err`.",
  },
  "audit.recovered": {
    level: "info",
    message: "audit log is written again",
    facts: { lost: "number" },
    when: "The first line after `audit.failed`. `lost` counts the lines that memory could not hold.",
  },
  "audit.lines_lost": {
    level: "error",
    message: "audit log lacks lines",
    facts: { lost: "number" },
    when: "The worker ends, and could not write `lost` lines.",
    action: "See `audit.failed` above it.",
  },
} as const satisfies Readonly<Record<string, LogEvent>>;
