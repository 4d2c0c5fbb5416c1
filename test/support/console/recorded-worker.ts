/** A worker and its calls as the console shows them. */
import type {
  CallDetail,
  CallView,
  LimitView,
  Sample,
  WorkerView,
} from "../../../worker/console/api.ts";
import { hostileText, recordedTools } from "./recorded-tools.ts";

const mebibyte = 1024 * 1024;

export const recordedLimits: readonly LimitView[] = [
  { limit: "memory", bound: 1024 * mebibyte, unit: "bytes", by: "guard" },
  { limit: "cpu_time", bound: 300, unit: "seconds", by: "guard" },
  { limit: "processes", bound: 128, unit: "count", by: "kernel" },
  { limit: "cpus", bound: 2, unit: "count", by: "none" },
  { limit: "wall_time", bound: 30, unit: "seconds", by: "guard" },
];

export function recordedView(nowMs: number): WorkerView {
  return {
    worker: {
      id: "worker-7f3a",
      version: "0.1.0",
      namespace: "demo/a",
      group: "default",
      broker: "dev",
      store: "filesystem /var/lib/artifacts",
      startedAtMs: nowMs - 3_725_000,
    },
    isReady: false,
    missing: ["the queue sandbox/reports cannot be consumed: permission denied"],
    warnings: ["cpus is not enforced on this host"],
    queues: [
      { name: "demo/a/q/sandbox/default", slots: 8 },
      { name: "demo/a/q/sandbox/reports", slots: 2 },
    ],
    manifest: {
      revision: "sha256:5be1c2f0",
      isUsable: false,
      problems: [`line 12: unknown field "profil" ${hostileText}`],
      unavailable: [{ tool: "missing_tool", reason: "No module named 'pandas'" }],
    },
    tools: recordedTools,
    profiles: [
      {
        name: "standard",
        backend: "bubblewrap",
        network: "none",
        limits: recordedLimits,
        unenforced: ["cpus"],
      },
      {
        name: "restrictive",
        backend: "bubblewrap",
        network: "list",
        limits: recordedLimits.slice(0, 3),
        unenforced: [],
      },
    ],
    hosts: [
      {
        backend: "bubblewrap",
        technology: "bubblewrap 0.8.0, user namespaces",
        checks: [
          {
            name: "user namespaces",
            state: "held",
            required: true,
            finding: "Ordinary users can create them.",
            remedy: null,
          },
          {
            name: "control groups",
            state: "partly",
            required: false,
            finding: "The worker's group cannot be divided.",
            remedy: "Run the worker as a systemd unit with Delegate=yes.",
          },
          {
            name: "seccomp",
            state: "missing",
            required: true,
            finding: "The kernel has no seccomp filters.",
            remedy: "Use a kernel with CONFIG_SECCOMP_FILTER.",
          },
        ],
      },
    ],
    keepsOutput: true,
  };
}

/** A call that has ended well, with changes. */
export function recordedCall(number: number, receivedAtMs: number, changes = {}): CallView {
  const runMs = 20 + ((number * 37) % 90);
  return {
    id: `c${number}`,
    number,
    tool: "echo_tool",
    isOwn: false,
    correlationId: `corr-${number}`,
    traceId: "4bf92f3577b34da6a3ce929d0e0e4736",
    queue: "sandbox/default",
    deliveryCount: 1,
    receivedAtMs,
    phases: [
      { step: "receive", startMs: 0, endMs: 2.25 },
      { step: "queue", startMs: 2.25, endMs: 8 },
      { step: "acquire", startMs: 8, endMs: 17 },
      { step: "stage", startMs: 17, endMs: 21 },
      { step: "run", startMs: 21, endMs: 21 + runMs },
      { step: "collect", startMs: 21 + runMs, endMs: 25 + runMs },
      { step: "publish", startMs: 25 + runMs, endMs: 31 + runMs },
    ],
    durationMs: 31 + runMs,
    outcome: "ok",
    settlement: "accepted",
    profile: "standard",
    start: "pool",
    backend: "bubblewrap",
    limits: recordedLimits,
    unenforced: ["cpus"],
    cpuMs: 31,
    peakMemoryBytes: 11_534_336,
    limitReached: null,
    isCancelled: false,
    ...changes,
  };
}

/** A call that runs, as it is received. */
export function runningCall(number: number, receivedAtMs: number, changes = {}): CallView {
  return recordedCall(number, receivedAtMs, {
    phases: [
      { step: "receive", startMs: 0, endMs: 2 },
      { step: "queue", startMs: 2, endMs: 3 },
      { step: "acquire", startMs: 3, endMs: 9 },
      { step: "run", startMs: 9, endMs: null },
    ],
    durationMs: null,
    outcome: null,
    settlement: null,
    limits: [],
    cpuMs: null,
    peakMemoryBytes: null,
    ...changes,
  });
}

/** Calls of agents and of the console, the newest first. */
export function recordedCalls(nowMs: number): readonly CallView[] {
  return [
    runningCall(9, nowMs - 4_000, { tool: "slow_tool" }),
    recordedCall(8, nowMs - 20_000, { isOwn: true, id: "rich" }),
    recordedCall(7, nowMs - 31_000, {
      tool: "process_file",
      outcome: "RESOURCE_EXHAUSTED",
      limitReached: "memory",
      deliveryCount: 2,
    }),
    recordedCall(6, nowMs - 47_000, { tool: null, outcome: "TOOL_NOT_AVAILABLE", phases: [] }),
    ...[5, 4, 3, 2, 1].map((number) => recordedCall(number, nowMs - 60_000 - 9_000 * (5 - number))),
  ];
}

export function recordedSamples(nowMs: number): readonly Sample[] {
  return Array.from({ length: 60 }, (_, at) => ({
    atMs: nowMs - (60 - at) * 5_000,
    seconds: 5,
    calls: at % 20 === 7 ? 0 : 20 + Math.round(15 * Math.sin(at / 6)),
    errors: at % 11 === 3 ? 4 : 0,
    p50Ms: at % 20 === 7 ? null : 40 + 10 * Math.cos(at / 5),
    p99Ms: at % 20 === 7 ? null : 130 + 60 * Math.sin(at / 4),
    running: 3 + (at % 5),
    waiting: at % 9 === 0 ? 6 : 0,
    idle: 4 - (at % 3),
    idleWanted: 4,
    idleMemoryBytes: (40 + (at % 7)) * mebibyte,
  }));
}

/** A red square. */
const image =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAIAAAACUFjqAAAAEklEQVR4nGP4z8CAB+GTG8HSALfKY52fTcuYAAAAAElFTkSuQmCC";

/** The artifacts of the call `rich`, with their bytes. */
export const recordedArtifacts = [
  {
    view: artifact("chart.svg", "image/svg+xml", "A chart of words"),
    bytes: `<svg xmlns="http://www.w3.org/2000/svg" width="200" height="80"><script>parent.document.title="owned"</script><rect width="200" height="80" fill="#1d5fbf"/></svg>`,
  },
  {
    view: artifact("words.csv", "text/csv", null),
    bytes: `word,count\r\n"a, b",3\r\n${hostileText.replaceAll('"', '""')},4\r\n`,
  },
  {
    view: artifact("facts.json", "application/json", null),
    bytes: `{"words": [1, 2, {"a": null}]}`,
  },
  { view: artifact(`${hostileText}.txt`, "text/plain", hostileText), bytes: hostileText },
  { view: artifact("model.bin", "application/octet-stream", null), bytes: "\0\x01" },
] as const;

function artifact(filename: string, mimeType: string, description: string | null) {
  return { filename, version: 0, mimeType, sizeBytes: 120, description };
}

/** The call `rich`: a table, an image, artifacts, statuses and output. */
export function richDetail(call: CallView): CallDetail {
  return {
    call,
    statuses: [
      { callId: call.id, atMs: call.receivedAtMs + 25, text: "Reading the report" },
      { callId: call.id, atMs: call.receivedAtMs + 40, text: hostileText },
    ],
    output: [
      { stream: "stdout", text: "\x1b[32mline 1\x1b[0m\nline 2\n", isCut: true },
      { stream: "stderr", text: `${hostileText}\n`, isCut: false },
    ],
    request: { arguments: { message: "hello", times: 2 }, inputs: {} },
    answer: {
      jsonrpc: "2.0",
      id: "x",
      result: {
        tool_result: {
          rows: [
            { word: "sandbox", count: 12, link: "javascript:alert(1)" },
            { word: hostileText, count: 3, more: { a: [1, 2] } },
          ],
          picture: image,
          text: "A long line of text that the page shows as it is, since trees make it hard to read.",
          many: Array.from({ length: 450 }, (_, at) => at),
        },
        execution_time_ms: 52,
        timed_out: false,
      },
    },
    artifacts: recordedArtifacts.map(({ view }) => view),
  };
}
