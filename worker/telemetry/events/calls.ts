/**
 * Log events of a call from its arrival to its end.
 */
import type { LogEvent } from "./event.ts";

/** Events of a call from its arrival to its end, by name. */
export const callEvents = {
  "call.received": {
    level: "info",
    message: "invocation received",
    facts: {},
    when: "A valid call arrived.",
  },
  "tool_call.received": {
    level: "info",
    message: "call by a tool received",
    facts: {},
    when: "A tool calls another one by its [gateway](gateway.md). Each line of the call has its `depth`, and the calling `parent` with its `parentId`.",
  },
  "tool_call.ended": {
    level: "info",
    message: "call by a tool ended",
    facts: { outcome: "text", durationMs: "number", err: "error?" },
    when: "`outcome` is `ok` or the code of an error. The line has `err` unless the text comes from the tool.",
  },
  "remote_tools.listen_failed": {
    level: "warn",
    message: "tools of other workers are not heard of",
    facts: { err: "error" },
    when: "The broker refuses what [tools of other workers](gateway.md#tools-of-other-workers) need. They can be called without descriptions if only `init/>` and `removed/>` are refused; the worker tries again every 30 seconds.",
    action: "Let the worker use [their topics](gateway.md#tools-of-other-workers).",
  },
  "remote_tools.answer_ignored": {
    level: "debug",
    message: "answer of another worker ignored",
    facts: { ignored: "number" },
    when: "Nobody waits for it: it came too late, twice, or from somebody else. `ignored` counts them since the start.",
  },
  "tool_channel.violated": {
    level: "warn",
    message: "channel of a tool closed for a message that it must not send",
    facts: { reason: "text" },
    when: "The tool sent what [the channel](gateway.md#the-channel) does not have; its calls ended.",
    action: "Look at the tool: the runner's library sends no such message.",
  },
  "module.compiled": {
    level: "debug",
    message: "module compiled ahead",
    facts: { module: "text" },
    when: "The [compiled code](sandbox.md#compiled-code-of-node-tools) of a Node tool exists.",
  },
  "module.compile_failed": {
    level: "debug",
    message: "module could not be compiled ahead",
    facts: { module: "text", err: "error" },
    when: "Calls run without compiled code.",
  },
  "call.no_free_slot": {
    level: "debug",
    message: "no slot is free",
    facts: { running: "number", waiting: "number" },
    when: "The call waits for a slot, or is refused.",
  },
  "program.received": {
    level: "info",
    message: "program received",
    facts: { language: "text", sha256: "text", bytes: "number" },
    when: "The call brings a [program](programs.md); `sha256` is that of its source.",
  },
  "call.staging_inputs": {
    level: "debug",
    message: "staging inputs",
    facts: { preloaded: "number", references: "number" },
    when: "The call has a slot.",
  },
  "tool.started": {
    level: "info",
    message: "tool started",
    facts: {
      profile: "text",
      backend: "text",
      start: "text",
      limitMs: "number",
      enforcement: "object",
      unenforced: "list",
    },
    when: "The tool's process runs; [Start](operate.md#start) explains `enforcement` and `unenforced`.",
  },
  "tool.not_isolated": {
    level: "warn",
    message: "tool runs without isolation",
    facts: { profile: "text", backend: "text" },
    when: "The tool's `profile` has the `backend` `host`.",
    action: "Outside development unset [`SANDBOX_ALLOW_UNSAFE`](configuration.md#notes).",
  },
  "tool.output": {
    level: "debug",
    message: "tool output",
    facts: { stream: "text", text: "text" },
    when: "The tool prints a line, with `TOOL_LOGS=caller`.",
  },
  "tool.status": {
    level: "debug",
    message: "tool status",
    facts: { text: "text" },
    when: "A status of the tool is relayed.",
  },
  "tool.output_limit_reached": {
    level: "debug",
    message: "tool prints too much for the log",
    facts: { stream: "text", maxLoggedBytes: "number" },
    when: "A stream exceeds 1 MiB; its further lines are not logged.",
  },
  "tool.ended": {
    level: "debug",
    message: "tool process ended",
    facts: { report: "object", droppedStatusLines: "number" },
    when: "`report` has exit code and signal, and with [`TOOL_LOGS`](operate.md#output-of-tools) the end of the output.",
  },
  "call.cancelled": {
    level: "info",
    message: "invocation cancelled",
    facts: { durationMs: "number", statuses: "object", reason: "text", started: "boolean" },
    when: "`reason` is `caller` (its caller [cancelled](protocol.md#cancel) the call, which is answered `CANCELLED`), `operator` (a user of the [console](console.md) did), `shutdown` (the worker requeues the call) or `elsewhere` (another worker has or gets it). The tool may have run here if `started`.",
  },
  "call.cancelled_ahead": {
    level: "info",
    message: "invocation cancelled before it came",
    facts: { id: "text", topic: "text" },
    when: "The worker had received the [cancel](protocol.md#cancel) of a call before the call, and answers it `CANCELLED` without running it.",
  },
  "cancel.ignored": {
    level: "debug",
    message: "cancel of another caller ignored",
    facts: { correlationId: "text", ignored: "number" },
    when: "A running call has the id of a [cancel](protocol.md#cancel) that did not come from its caller. `ignored` counts them since the start.",
  },
  "cancel.listen_failed": {
    level: "warn",
    message: "cancels are not received",
    facts: { err: "error" },
    when: "The broker refuses the subscription to [cancels](protocol.md#cancel). Calls run, and cannot be cancelled; the worker tries again every 30 seconds.",
    action: "Let the worker subscribe to [their topic](protocol.md#topics).",
  },
  "call.finished": {
    level: "info",
    message: "invocation finished",
    facts: { durationMs: "number", statuses: "object", artifacts: "number" },
    when: "The tool returned a result.",
  },
  "call.too_old": {
    level: "warn",
    message: "call arrived too late",
    facts: {
      ageMs: "number",
      sentAtMs: "number",
      receivedAtMs: "number",
      clock: "text",
      total: "number",
    },
    when: "The call's time limit had passed on arrival. `clock` is `sender` or `broker`; `total` counts such calls since the start.",
    action:
      "If one agent causes many, compare its clock with the worker's ([Protocol](protocol.md#time)).",
  },
  "call.timed_out": {
    level: "warn",
    message: "invocation timed out",
    facts: { durationMs: "number", statuses: "object", started: "boolean", code: "text" },
    when: "The time limit passed; `code` is `SANDBOX_TIMEOUT`. `started` is false if the tool had not started.",
    action: "If it repeats, raise the tool's time limit, or add slots if not `started`.",
  },
  "call.failed": {
    level: "warn",
    message: "invocation failed",
    facts: { durationMs: "number", statuses: "object", code: "text", err: "error?" },
    when: "The call failed with `code`. The line has `err` unless the text comes from the tool.",
    action: "See [the code](protocol.md#error-codes).",
  },
  "call.failure_cause": {
    level: "debug",
    message: "why the invocation failed",
    facts: { err: "error" },
    when: "`err` of any origin.",
  },
  "call.refused": {
    level: "warn",
    message: "invocation refused",
    facts: { code: "text", err: "error?", id: "text", topic: "text" },
    when: "The worker answers the call without running it.",
    action: "See [the code](protocol.md#error-codes).",
  },
  "tool.probed": {
    level: "debug",
    message: "tool probed",
    facts: { topic: "text" },
    when: "The worker refuses a request [without parameters](protocol.md#is-a-tool-served).",
  },
} as const satisfies Readonly<Record<string, LogEvent>>;
