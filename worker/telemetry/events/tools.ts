/**
 * Log events: what happens to the manifest, the code of tools, and sandboxes that wait for calls.
 */
import type { LogEvent } from "./event.ts";

/** What happens to the manifest, the code of tools, and sandboxes that wait, by name. */
export const toolEvents = {
  "manifest.loaded": {
    level: "info",
    message: "manifest loaded",
    fields: ["revision", "tools", "added", "removed", "changed"],
    meaning: "`added`, `removed`, `changed`",
  },
  "manifest.has_warnings": {
    level: "warn",
    message: "manifest has warnings",
    fields: ["warnings"],
    meaning: "unknown or unused keys, or no version",
  },
  "request.tool_name_differs": {
    level: "warn",
    message: "request names another tool than its topic, which counts",
    fields: ["tool", "named"],
    meaning: "once per tool, with `named`; check the agent's configuration",
  },
  "tool.not_served": {
    level: "warn",
    message: "tool not served",
    fields: ["tool", "reason"],
    meaning: "with `reason`; its calls are answered `TOOL_NOT_AVAILABLE`",
  },
  "tool.left_to_queue": {
    level: "info",
    message: "tool left to workers of its queue",
    fields: ["tool", "queue"],
    meaning: "its `queue` is none of this worker's `WORKER_QUEUES`; `tool`, `queue`",
  },
  "call.requeued_unserved": {
    level: "info",
    message: "call of a tool that is not served here was requeued",
    fields: ["tool"],
    meaning:
      "requeued [once](protocol.md#tools-that-are-not-served), for a worker that serves it; `tool`",
  },
  "manifest.unusable": {
    level: "error",
    message: "manifest not usable, last good one kept",
    fields: ["err", "revision"],
    meaning: "correct the file; nothing else changes",
  },
  "manifest.usable_again": {
    level: "info",
    message: "manifest usable again",
    fields: ["revision"],
    meaning: "the file is valid again",
  },
  "manifest.file_events_lost": {
    level: "warn",
    message: "file events lost, manifest is polled",
    fields: ["err"],
    meaning: "the host is out of inotify watches; changes are seen within two seconds all the same",
  },
  "code.followed": {
    level: "debug",
    message: "tool code is followed",
    fields: ["runtime", "isSettled"],
    meaning:
      "first fingerprint of a language's tool code; `isSettled` is false if it was written a moment before: artifacts made from it are then made once more; `runtime`",
  },
  "code.changed": {
    level: "debug",
    message: "tool code changed",
    fields: ["runtime", "version", "isSettled"],
    meaning: "tool code or installed packages changed; every call uses them from now on; `version`",
  },
  "code.in_force": {
    level: "info",
    message: "tool code changed; calls that start now run the new code",
    fields: ["runtime", "version"],
    meaning:
      "once per burst of changes, when all calls from before have ended; `runtime`, `version`",
  },
  "sandbox.idle": {
    level: "debug",
    message: "sandbox waits for a call",
    fields: ["tool", "profile", "startMode", "tookMs", "waiting"],
    meaning:
      "a sandbox was made [before its call](warm-starts.md); `tool`, `profile`, `startMode`, `tookMs`, `waiting`",
  },
  "sandbox.retired": {
    level: "info",
    message: "idle sandboxes retired",
    fields: ["tool", "profile", "count", "reason"],
    meaning: "tool code or manifest entry changed; `tool`, `profile`, `count`, `reason`",
  },
  "sandbox.idle_disposed": {
    level: "info",
    message: "idle sandboxes disposed",
    fields: ["tool", "profile", "count"],
    meaning:
      "the last of a tool: it was idle for long, or busier tools need the memory; `tool`, `profile`, `count`",
  },
  "warm_start.failed": {
    level: "warn",
    message: "warm start failed",
    fields: ["tool", "startMode", "retryMs", "err"],
    meaning:
      "an idle sandbox could not be made, or ended; calls start cold; `tool`, `startMode`, `retryMs` until the next attempt, `err`",
  },
  "warm_start.unfit": {
    level: "info",
    message: "tool unfit for this start mode",
    fields: ["startMode", "next", "err"],
    meaning:
      "its module cannot be preloaded by `startMode`; `next` applies until the code changes; `err` says why",
  },
  "warm_start.unknown": {
    level: "debug",
    message: "start mode not known here",
    fields: ["startMode", "next"],
    meaning: "the language or sandbox technology lacks it; `startMode`, `next`",
  },
  "sandbox.dispose_failed": {
    level: "warn",
    message: "idle sandbox could not be disposed",
    fields: ["err"],
    meaning: "`err` says why",
  },
  "code.unreadable": {
    level: "warn",
    message: "tool code cannot be looked at",
    fields: ["runtime", "path", "code"],
    meaning:
      "`path`, and the system's `code`, or `TOO_LARGE` above 100,000 entries: then sandboxes made ahead are renewed periodically",
  },
  "code.file_events_lost": {
    level: "warn",
    message: "file events lost, tool code is polled",
    fields: ["err", "runtime"],
    meaning:
      "the host is out of inotify watches; changes are seen within two seconds, or later with many thousand files",
  },
  "manifest.follow_failed": {
    level: "error",
    message: "manifest no longer followed",
    fields: ["err"],
    meaning: "a defect; the worker ends",
  },
} as const satisfies Readonly<Record<string, LogEvent>>;
