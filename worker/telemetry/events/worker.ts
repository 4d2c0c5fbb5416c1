/**
 * Log events of the worker's own life.
 */
import type { LogEvent } from "./event.ts";

/** Events of a worker's start, by name. */
export const startEvents = {
  "worker.ready": {
    level: "info",
    message: "worker ready",
    facts: {
      namespace: "text",
      workerId: "text",
      group: "text",
      queues: "object",
      topics: "list",
      unavailableTools: "object",
      store: "text",
      sandboxes: "object",
      runners: "list",
      profiles: "list",
    },
    when: "The worker is connected and serves. `--check` prints the same facts.",
  },
  "worker.root_not_needed": {
    level: "info",
    message: "root is not needed",
    facts: { sandboxUid: "number", advice: "text" },
    when: "The worker runs as root; `sandboxUid` is the user of its sandboxes.",
    action: "Start the worker as an ordinary user without capabilities.",
  },
  "sandbox.check_not_held": {
    level: "info",
    message: "check not held",
    facts: { part: "text", check: "text", state: "text", finding: "text", remedy: "text?" },
    when: "A sandbox [check](doctor.md#checks) does not hold on this host.",
    action: "Apply `remedy`, or accept `finding`.",
  },
  "sandbox.network_missing": {
    level: "warn",
    message: "sandboxes have no networks of their own",
    facts: { err: "error", remedy: "text" },
    when: "A tool's [network](network.md) is `public` or a list of hosts, and a trial shows that this host cannot enforce it. The tool is not served.",
    action:
      "Apply `remedy`, or set `network: none` in the tool's entry. `SANDBOX_DEFAULT_NETWORK=host` gives tools under `standard` that name no network the host's.",
  },
  "sandbox.host_network_default": {
    level: "warn",
    message: "tools have the host's network, and their entries do not say so",
    facts: { tools: "list" },
    when: "`SANDBOX_DEFAULT_NETWORK` is `host`. `tools` reach what the host reaches: loopback services, private networks, cloud metadata, the broker. After a reload, the warning names only added tools.",
    action:
      "Give each the [network](network.md) that it needs in the manifest, then unset the variable.",
  },
  "sandbox.host_network_replaced": {
    level: "warn",
    message: "tools that ask for the host's network reach public addresses only",
    facts: { tools: "list" },
    when: "`SANDBOX_HOST_NETWORK` is `public`. `tools` have the network `host`, by their entries or profiles. After a reload, the warning names only added tools.",
    action: "Give those that need a private host a [list](network.md) with it.",
  },
  "network.credential_unusable": {
    level: "warn",
    message: "a credential was not added to a request, which was refused",
    facts: { err: "error" },
    when: "The value of a [credential](network.md#credentials) cannot be read, is empty, too large, has characters that a header cannot have, or is a file of the worker's own. The request gets a 502.",
    action:
      "Correct the file, which is read for each request; or the variable, and restart the worker.",
  },
  "metrics.failed": {
    level: "warn",
    message: "the page of metrics cannot be made",
    facts: { err: "error" },
    when: "A request for [`/metrics`](metrics.md) was answered with 500; logged once. No call is affected.",
    action: "See `err`: a missing package after an update, or too many open files.",
  },
  "tracing.failed": {
    level: "warn",
    message: "traces are not exported",
    facts: { reason: "text" },
    when: "The collector of [traces](operate.md#traces) cannot be reached or refuses spans, which are lost, or the exporter ended; logged once until an export succeeds. No call is affected.",
    action: "See `reason`, and the variables that begin with `OTEL_EXPORTER_OTLP_`.",
  },
  "tracing.recovered": {
    level: "info",
    message: "traces are exported again",
    facts: { dropped: "number" },
    when: "The first export that succeeds after `tracing.failed`. `dropped` counts the spans that were lost in between.",
  },
  "artifacts.in_memory": {
    level: "warn",
    message: "artifacts are kept in this process: no agent can see what tools save",
    facts: {},
    when: "The store is `memory`.",
    action: "Set `ARTIFACT_SERVICE_TYPE=filesystem` where agents need the artifacts.",
  },
  "artifacts.limited": {
    level: "warn",
    message: "the artifact store cannot do all that others can",
    facts: { limits: "list" },
    when: "The store's check at the start found so.",
    action: "See [artifacts.md](artifacts.md#servers-without-conditions).",
  },
  "artifacts.away": {
    level: "error",
    message: "the artifact store does not answer",
    facts: { err: "error" },
    when: "A check of the store failed, which the worker repeats every 30 s. Calls that need the store fail; others run. `/readyz` has the reason under `warnings`.",
    action: "See `err`, and the [failures](artifacts.md#failures).",
  },
  "artifacts.back": {
    level: "info",
    message: "the artifact store answers again",
    facts: {},
    when: "The first check that succeeds after `artifacts.away`.",
  },
  "artifacts.cache_paused": {
    level: "warn",
    message: "the artifact cache cannot be used; calls read from the store for a minute",
    facts: { err: "error" },
    when: "Reading or writing `ARTIFACT_CACHE_DIR` failed. No call fails for that.",
    action: "See `err`: a full disk, or a directory that the worker may not write to.",
  },
  "artifacts.cache_damaged": {
    level: "warn",
    message: "a damaged file of the artifact cache was removed",
    facts: { sizeBytes: "number" },
    when: "The checksum or the size of a cached file was wrong. The call reads the artifact from the store.",
    action: "After a crash of the machine nothing; otherwise check the disk.",
  },
} as const satisfies Readonly<Record<string, LogEvent>>;

/** Events of a worker's end, by name. */
export const endEvents = {
  "worker.draining": {
    level: "info",
    message: "draining; a second signal stops immediately",
    facts: { drainTimeoutSeconds: "number" },
    when: "SIGTERM or SIGINT arrived.",
  },
  "worker.drained": {
    level: "info",
    message: "drained",
    facts: { finished: "number", requeued: "number", abandoned: "number" },
    when: "The worker ends. The facts count calls since the signal; the deadline stopped `abandoned`.",
  },
  "worker.stopped_at_once": {
    level: "warn",
    message: "stopped immediately",
    facts: { signal: "text" },
    when: "The second signal arrived.",
  },
  "worker.failed": {
    level: "fatal",
    message: "worker failed",
    facts: { reason: "text?", err: "error?" },
    when: "The worker lost the broker for good (`reason`), or hit a defect (`err`), and ends.",
    action: "See the [exit code](operate.md#exit-codes); report a defect.",
  },
} as const satisfies Readonly<Record<string, LogEvent>>;
