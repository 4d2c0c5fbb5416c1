/**
 * The labels of metrics: each has few values, which no caller and no tool chooses.
 */

/** What labels have. */
export const metricLabels = {
  tool: "a tool of the manifest that is served and has something to count",
  profile: "a sandbox profile",
  outcome:
    "`ok`, an [error code](protocol.md#error-codes), or of a call without an answer of its own `requeued`, `duplicate`, `rejected`, `unanswered`; of an artifact `ok`, `refused` (such as one that is not found), `cancelled`, or `failed` by the store",
  settlement: "how deliveries were settled: `accepted`, `failed`, `rejected`, or `none`",
  step: "a step of a call: `receive`, `queue`, `acquire`, `stage`, `run`, `collect`, `publish`",
  start: "how a sandbox was started: `cold`, `pool`, `template`",
  limit:
    "a limit by its [word in answers](protocol.md#execution-facts), or a protection that a host can lack",
  queue: "a queue that the worker consumes",
  store: "`filesystem`, `s3`, `gcs`, `memory`",
  operation: "`open`, `save`, `delete`",
  state: "of environments `ready`, `installing`, `failed`; of tools `served`, `unavailable`",
  revision: "the first 12 digits of the hash of a manifest",
  verdict: "`allowed` or `refused`",
  version: "the version of this package",
  node: "the version of Node",
  direction:
    "of connections `sent` or `received`, as the tool sees it; of artifacts `read` or `written`",
} as const;

/** A label. */
export type MetricLabel = keyof typeof metricLabels;
