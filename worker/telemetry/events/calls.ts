/**
 * Log events: what a call does from its arrival to its end.
 */
import type { LogEvent } from "./event.ts";

/** What a call does from its arrival to its end, by name. */
export const callEvents = {
  "call.received": {
    level: "info",
    message: "invocation received",
    fields: [],
    meaning: "a valid call",
  },
  "module.compiled": {
    level: "debug",
    message: "module compiled ahead",
    fields: ["module"],
    meaning: "a Node tool's [compiled code](sandbox.md#compiled-code-of-node-tools) is there",
  },
  "module.compile_failed": {
    level: "debug",
    message: "module could not be compiled ahead",
    fields: ["module", "err"],
    meaning: "`err` says why; calls run without it",
  },
  "call.no_free_slot": {
    level: "debug",
    message: "no slot is free",
    fields: ["running", "waiting"],
    meaning: "the call waits for a slot, or is refused; `running`, `waiting`",
  },
  "call.staging_inputs": {
    level: "debug",
    message: "staging inputs",
    fields: ["preloaded", "references"],
    meaning: "the call has a slot; `preloaded`, `references`",
  },
  "tool.started": {
    level: "info",
    message: "tool started",
    fields: ["profile", "backend", "start", "limitMs", "enforcement", "unenforced"],
    meaning: "`profile`, `backend`, `start`, `limitMs`, `enforcement`, `unenforced`",
  },
  "tool.not_isolated": {
    level: "warn",
    message: "tool runs without isolation",
    fields: ["profile", "backend"],
    meaning:
      "its `profile` has the `backend` `host`; see [`SANDBOX_ALLOW_UNSAFE`](configuration.md#notes)",
  },
  "tool.output": {
    level: "debug",
    message: "tool output",
    fields: ["stream", "text"],
    meaning: "a line that the tool prints, as it arrives; `stream`, `text`",
  },
  "tool.output_limit_reached": {
    level: "debug",
    message: "tool prints too much for the log",
    fields: ["stream", "maxLoggedBytes"],
    meaning: "more than 1 MiB on a `stream`: the rest is not logged as it arrives",
  },
  "tool.ended": {
    level: "debug",
    message: "tool process ended",
    fields: ["report", "droppedStatusLines"],
    meaning: "`report` with exit code, signal and output",
  },
  "call.cancelled": {
    level: "info",
    message: "invocation cancelled",
    fields: ["durationMs", "statuses", "reason", "started"],
    meaning:
      "`reason` is `shutdown`: it is requeued; or `elsewhere`: another worker has it, or gets it from the broker. `started` says whether the tool may have run here",
  },
  "call.finished": {
    level: "info",
    message: "invocation finished",
    fields: ["durationMs", "statuses", "artifacts"],
    meaning: "`durationMs`, `artifacts`, `statuses`",
  },
  "call.too_old": {
    level: "warn",
    message: "call was too old when it came",
    fields: ["ageMs", "sentAtMs", "receivedAtMs", "clock", "total"],
    meaning:
      "`ageMs`, `sentAtMs`, `receivedAtMs`, `clock`: `sender` or `broker`, and `total` since the start. If one agent causes many, compare its clock with the worker's ([Protocol](protocol.md#time))",
  },
  "call.timed_out": {
    level: "warn",
    message: "invocation timed out",
    fields: ["durationMs", "statuses", "started", "code"],
    meaning:
      "`durationMs`, `statuses`, `code` is `SANDBOX_TIMEOUT`; `started` is false when it timed out before the tool started",
  },
  "call.failed": {
    level: "warn",
    message: "invocation failed",
    fields: ["durationMs", "statuses", "code", "err"],
    meaning: "`code`; `err` with the cause, unless the text comes from the tool",
  },
  "call.failure_cause": {
    level: "debug",
    message: "why the invocation failed",
    fields: ["err"],
    meaning: "`err` of any origin",
  },
  "call.refused": {
    level: "warn",
    message: "invocation refused",
    fields: ["code", "err", "id", "topic"],
    meaning: "it is answered without a run; `code`, `err` says why",
  },
  "tool.probed": {
    level: "debug",
    message: "asked whether the tool is served",
    fields: ["topic"],
    meaning: "by a request [without parameters](protocol.md#is-a-tool-served), which is refused",
  },
} as const satisfies Readonly<Record<string, LogEvent>>;
