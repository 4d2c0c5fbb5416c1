/**
 * Log events: what a worker says of its own life.
 */
import type { LogEvent } from "./event.ts";

/** What a worker says when it starts, by name. */
export const startEvents = {
  "worker.ready": {
    level: "info",
    message: "worker ready",
    fields: [
      "namespace",
      "workerId",
      "group",
      "queues",
      "topics",
      "unavailableTools",
      "store",
      "sandboxes",
      "runners",
      "profiles",
    ],
    meaning: "it is connected and serves; same facts as `--check`",
  },
  "worker.root_not_needed": {
    level: "info",
    message: "root is not needed",
    fields: ["sandboxUid", "advice"],
    meaning:
      "the worker is root; `sandboxUid` is the user of its sandboxes, `advice` the alternative",
  },
  "sandbox.check_not_held": {
    level: "info",
    message: "check not held",
    fields: ["part", "check", "state", "finding", "remedy"],
    meaning:
      "a sandbox [check](doctor.md#checks) does not hold on this host: `check`, `finding`, `remedy`",
  },
  "artifacts.in_memory": {
    level: "warn",
    message: "artifacts are kept in this process: no agent can see what tools save",
    fields: [],
    meaning: "the store is `memory`",
  },
} as const satisfies Readonly<Record<string, LogEvent>>;

/** What a worker says when it ends, by name. */
export const endEvents = {
  "worker.draining": {
    level: "info",
    message: "draining; a second signal stops at once",
    fields: ["drainTimeoutSeconds"],
    meaning: "SIGTERM or SIGINT came",
  },
  "worker.drained": {
    level: "info",
    message: "drained",
    fields: ["finished", "requeued", "abandoned"],
    meaning: "calls since the signal: `finished`, `requeued`, `abandoned` at the deadline",
  },
  "worker.stopped_at_once": {
    level: "warn",
    message: "stopped at once",
    fields: ["signal"],
    meaning: "the second signal",
  },
  "worker.failed": {
    level: "fatal",
    message: "worker cannot go on",
    fields: ["reason", "err"],
    meaning:
      "the broker is lost for good, with `reason`, or a defect, with `err`; see the exit code",
  },
} as const satisfies Readonly<Record<string, LogEvent>>;
