/**
 * Log events of the manifest, the code of tools, and idle sandboxes.
 */
import type { LogEvent } from "./event.ts";

/** Events of the manifest, the code of tools, and idle sandboxes, by name. */
export const toolEvents = {
  "manifest.loaded": {
    level: "info",
    message: "manifest loaded",
    facts: {
      revision: "text",
      tools: "number",
      added: "list",
      removed: "list",
      changed: "list",
    },
    when: "A manifest came into force; `added`, `removed` and `changed` name tools.",
  },
  "manifest.has_warnings": {
    level: "warn",
    message: "manifest has warnings",
    facts: { warnings: "list" },
    when: "The manifest has unknown or unused keys, or no version.",
    action: "Correct the lines that `warnings` names.",
  },
  "request.tool_name_differs": {
    level: "warn",
    message: "request names another tool than its topic, which counts",
    facts: { tool: "text", named: "text" },
    when: "Once per tool; `named` is the name in the request.",
    action: "Check the agent's configuration.",
  },
  "tool.not_served": {
    level: "warn",
    message: "tool not served",
    facts: { tool: "text", reason: "text" },
    when: "The worker answers the tool's calls with `TOOL_NOT_AVAILABLE`.",
    action: "Provide the part that `reason` names; the worker checks every minute.",
  },
  "tool.left_to_queue": {
    level: "info",
    message: "tool left to workers of its queue",
    facts: { tool: "text", queue: "text" },
    when: "The tool's `queue` is none of this worker's `WORKER_QUEUES`.",
  },
  "call.requeued_unserved": {
    level: "info",
    message: "call of a tool that is not served here was requeued",
    facts: { tool: "text" },
    when: "[Once](protocol.md#tools-that-are-not-served) per call, for a worker that serves the tool.",
  },
  "manifest.unusable": {
    level: "error",
    message: "manifest not usable, last good one kept",
    facts: { err: "error", revision: "text" },
    when: "The file is invalid. The manifest `revision` stays in force.",
    action: "Correct the file by `err`.",
  },
  "manifest.usable_again": {
    level: "info",
    message: "manifest usable again",
    facts: { revision: "text" },
    when: "The file is valid again.",
  },
  "manifest.file_events_lost": {
    level: "warn",
    message: "file events lost, manifest is polled",
    facts: { err: "error" },
    when: "The host has no inotify watch left. The worker still sees changes within two seconds.",
    action: "Raise the host's inotify limits, or accept polling.",
  },
  "code.followed": {
    level: "debug",
    message: "tool code is followed",
    facts: { runtime: "text", isSettled: "boolean" },
    when: "The worker took the first fingerprint of a language's tool code. `isSettled` is false for code written a moment before: the worker makes artifacts of such code again.",
  },
  "code.changed": {
    level: "debug",
    message: "tool code changed",
    facts: { runtime: "text", version: "number", isSettled: "boolean" },
    when: "Tool code or installed packages changed. Every call uses them from now on.",
  },
  "code.in_force": {
    level: "info",
    message: "tool code changed; calls that start now run the new code",
    facts: { runtime: "text", version: "number" },
    when: "Once per burst of changes, when all earlier calls have ended.",
  },
  "sandbox.idle": {
    level: "debug",
    message: "sandbox waits for a call",
    facts: {
      tool: "text",
      profile: "text",
      startMode: "text",
      tookMs: "number",
      waiting: "number",
    },
    when: "The worker made a sandbox [before its call](warm-starts.md).",
  },
  "sandbox.retired": {
    level: "info",
    message: "idle sandboxes retired",
    facts: { tool: "text", profile: "text", count: "number", reason: "text" },
    when: "Tool code or manifest entry changed.",
  },
  "sandbox.idle_disposed": {
    level: "info",
    message: "idle sandboxes disposed",
    facts: { tool: "text", profile: "text", count: "number" },
    when: "The last idle sandboxes of a tool went: it was idle for long, or busier tools need the memory.",
  },
  "warm_start.failed": {
    level: "warn",
    message: "warm start failed",
    facts: { tool: "text?", startMode: "text?", retryMs: "number?", err: "error" },
    when: "An idle sandbox could not be made, or ended. Calls start cold until the next attempt, after `retryMs`.",
    action: "If it lasts, check the host by `err`.",
  },
  "warm_start.unfit": {
    level: "info",
    message: "tool unfit for this start mode",
    facts: { startMode: "text", next: "text", err: "error" },
    when: "`startMode` cannot preload the tool's module; `next` applies until the code changes.",
    action: "Correct the module by `err`, or set [`start`](warm-starts.md#set-it-up).",
  },
  "warm_start.unknown": {
    level: "debug",
    message: "start mode not known here",
    facts: { startMode: "text", next: "text" },
    when: "Language or sandbox technology lacks `startMode`; `next` applies.",
  },
  "sandbox.dispose_failed": {
    level: "warn",
    message: "idle sandbox could not be disposed",
    facts: { err: "error" },
    when: "The removal of an idle sandbox failed.",
    action: "Check the disk by `err`.",
  },
  "code.unreadable": {
    level: "warn",
    message: "tool code not readable",
    facts: { runtime: "text", path: "text", code: "text" },
    when: "The system refuses `path` with `code`; or the code has more than 100,000 entries (`TOO_LARGE`), and the worker renews idle sandboxes periodically.",
    action: "Make `path` readable, or the directory smaller.",
  },
  "code.file_events_lost": {
    level: "warn",
    message: "file events lost, tool code is polled",
    facts: { err: "error", runtime: "text" },
    when: "The host has no inotify watch left. The worker sees changes within two seconds, or later with many thousand files.",
    action: "Raise the host's inotify limits, or accept polling.",
  },
  "tool.not_described": {
    level: "warn",
    message: "tool not described by its code",
    facts: { tool: "text", code: "text", err: "error?" },
    when: "The code of a tool gave no [description](schemas.md#discovery); `err` is missing if its text is the tool's own. Calls run, with unchecked arguments; agents get `failed_discovery`.",
    action:
      "See the reason with [`harness tool describe`](harness.md), and correct the tool, or describe it in the manifest. The worker tries again when the code changes, and after a minute, then in doubling intervals.",
  },
  "tool.schema_refused": {
    level: "warn",
    message: "schema of a tool's code not usable",
    facts: { tool: "text", field: "text", reason: "text" },
    when: "The code's schema is [not accepted](schemas.md#accepted-schemas), so that it is not used.",
    action: "Give the schema in the manifest.",
  },
  "discovery.refused": {
    level: "warn",
    message: "request for a description refused",
    facts: { tool: "text", code: "text", err: "error?" },
    when: "The worker answered a request for a [description](schemas.md#discovery) with an error; `err` is missing if its text is the tool's own.",
    action: "See `code`, and `tool.not_described`.",
  },
  "discovery.failed": {
    level: "warn",
    message: "discovery could not reach the broker",
    facts: { err: "error" },
    when: "The broker refused a broadcast, a subscription or an answer of [discovery](schemas.md#discovery). Calls are not concerned.",
    action:
      "Grant the worker's user the topics of [protocol.md](protocol.md#topics), or set `TOOLS_DISCOVERY=0`.",
  },
  "manifest.follow_failed": {
    level: "error",
    message: "manifest no longer followed",
    facts: { err: "error" },
    when: "A defect; the worker ends.",
    action: "Restart the worker and report the defect.",
  },
} as const satisfies Readonly<Record<string, LogEvent>>;
