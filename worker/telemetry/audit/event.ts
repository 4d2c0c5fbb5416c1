/**
 * The lines of the audit log: a closed schema, and its documentation.
 */

/** Version of the schema, in each line. It changes when a field changes its meaning. */
export const auditVersion = 1;

/** What each line is about, in Markdown for docs/audit.md. */
export const auditEvents = {
  "call.start":
    "The worker begins a valid call. Without a `call.end` of the same worker after it, the call is not answered yet, or the worker was killed.",
  "call.end":
    "The end of a delivery: its answer was published, it was requeued, or settled without a run.",
  "artifact.read":
    "An artifact goes to the tool: its version is open, or came with the request. If its content does not reach the work directory, another line says so.",
  "artifact.write": "An output of the tool is saved as a new version.",
  "artifact.delete":
    "The worker deletes a version that the same call has saved, since the call fails.",
  egress:
    "A connection of a tool whose [network](network.md) is `public` or a list of hosts, at its end or the call's, or one that was refused. A refused name has one too, and each refused request of an [opened](network.md#requests) connection.",
} as const;

/** The name of a line. */
export type AuditEventName = keyof typeof auditEvents;

/** When a field is there and what it means, in Markdown for docs/audit.md, in order. */
export const auditFields = {
  audit: ["always", "`1`, the version of this schema. No line of the worker's own log has it."],
  time: ["always", "When it happened, by the worker's clock: `2026-03-04T05:06:07.089Z`."],
  event: ["always", "See above."],
  worker: ["always", "`SAM_WORKER_ID`."],
  call: [
    "if the message has a reply topic",
    "Names one call in all its lines, on every worker and at every delivery.",
  ],
  tool: ["if the topic names one", "The tool of the call's topic."],
  parent: ["calls by tools", "The `call` of the tool that made the call."],
  request: ["if the request has a usable one", "The `id` of the request."],
  task: ["likewise", "Its `task_id`."],
  agent: ["likewise", "Its `app_name`."],
  user: ["likewise", "Its `user_id`."],
  session: ["likewise", "Its `session_id`."],
  artifact: ["`artifact.…`", "Its name; `user:` begins names of all sessions of the user."],
  version: [
    "`artifact.…`, unless the latest was not found or nothing was saved",
    "The number of the version.",
  ],
  sizeBytes: ["`artifact.read` that is `ok`, `artifact.write`", "The size of the content."],
  source: [
    "`artifact.read` of content in the request",
    "`request`: the agent read the artifact, the worker did not.",
  ],
  name: [
    "`egress` by name",
    "The name that the tool connected to or asked for, in ASCII and lower case.",
  ],
  address: [
    "`egress`, unless the worker came to none",
    "The address that the worker connected to, or refused.",
  ],
  port: ["`egress` but for a name that was only asked for", "The port."],
  verdict: ["`egress`", "`allowed` or `refused`."],
  rule: [
    "`egress` that rules allow",
    "These rules as their files have them, with `; ` between. One that was refused all the same has a `reason`.",
  ],
  sentBytes: ["`egress`", "Bytes from the tool."],
  receivedBytes: ["`egress`", "Bytes to the tool."],
  outcome: ["`call.end`, `artifact.…`", "`ok`, or as below."],
  reason: [
    "`artifact.…` with `ARTIFACT_ERROR`, `egress` that was refused",
    "Of an artifact `not-found`, `invalid-name`, `too-many-versions`, `too-many-names`; `refused`: the worker refuses its size; `unavailable`: the store, the copy or a required audit log failed. Of a connection the [reasons](network.md#what-happens-inside) of its refusal.",
  ],
  started: ["`call.end`", "Whether the tool may have run at this delivery."],
  durationMs: ["`call.end`, `egress`, and `artifact.…` that took time", "Whole milliseconds."],
} as const satisfies Readonly<Record<string, readonly [present: string, meaning: string]>>;

type Own = "audit" | "time" | "worker";

/** An event without the facts that the log adds. Strings may be of any length and content. */
export type AuditEvent = { readonly event: AuditEventName } & {
  readonly [Field in Exclude<keyof typeof auditFields, Own | "event">]?:
    string | number | boolean | undefined;
};

/** A whole line. */
export type AuditLine = AuditEvent & { readonly [Field in Own]: string | number };
