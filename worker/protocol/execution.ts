/**
 * The execution report of an answer: the sandbox, its limits, its usage.
 */
import {
  type LimitReached,
  type LimitUnit,
  type Limits,
  type Mechanism,
  type RefusalsReached,
  type LimitName,
  limitFacts,
  limitNames,
} from "./resource-limits.ts";

/**
 * Origin of a call's sandbox. `cold`: created for the call. `pool`: created before, with the tool
 * loaded. `template`: created before, as a copy of a process with the tool loaded.
 */
export const startKinds = ["cold", "pool", "template"] as const;
export type StartKind = (typeof startKinds)[number];

/** Report on one execution. */
export interface ExecutionReport {
  readonly profile: string;
  readonly backend: string;
  readonly start: StartKind;
  readonly limits: Limits;
  /** Enforcement of each limit. */
  readonly enforcedBy: Readonly<Record<LimitName, Mechanism>>;
  /** Time limit in milliseconds. */
  readonly timeLimitMs: number;
  /** Protections that this host lacks. */
  readonly unenforced: readonly string[];
  readonly usage: ExecutionUsage;
  /** Only of a sandbox that may reach some hosts. */
  readonly network?: NetworkUsage | undefined;
  /** Only of a worker whose callers get it. */
  readonly output?: ToolOutput | undefined;
  /** Only of a tool with a gateway. */
  readonly calls?: GatewayReport | undefined;
}

/** A call that a tool made. */
export interface ToolCallReport {
  /** Names it in the log. */
  readonly id: string;
  /** The id of the called tool. */
  readonly tool: string;
  /** Technology of its sandbox; undefined where none was made. */
  readonly backend: string | undefined;
  /** Milliseconds since the gateway was opened. */
  readonly startMs: number;
  readonly durationMs: number;
  /** `ok`, or the code of its error. */
  readonly outcome: string;
  /** What failed: resolve, validate_input, execute and so on. */
  readonly op?: string | undefined;
  readonly depth: number;
  /** Of its result. */
  readonly bytes: number;
}

/** What a tool did by its gateway. */
export interface GatewayReport {
  /** The first ones. */
  readonly calls: readonly ToolCallReport[];
  /** Calls beyond these. */
  readonly omittedCalls: number;
  /** Why the worker closed the channel before the tool ended; undefined if it did not. */
  readonly closedBecause?: string | undefined;
}

/** Why a connection was refused; docs/network.md says what each means. */
export const refusalReasons = [
  "name-not-allowed",
  "no-rule",
  "not-public",
  "worker",
  "name-not-found",
  "unreachable",
  "sni",
  "not-tls",
  "handshake",
  "request",
  "credential",
  "certificate",
  "too-many-connections",
] as const;
export type RefusalReason = (typeof refusalReasons)[number];

/** A connection that was refused, or a name. */
export interface NetworkRefusal {
  /** Its name in ASCII and lower case, or its address. */
  readonly host: string;
  /** Undefined where a name was only asked for. */
  readonly port?: number;
  readonly reason: RefusalReason;
}

/** What a sandbox did with its network. */
export interface NetworkUsage {
  readonly connections: number;
  readonly sentBytes: number;
  readonly receivedBytes: number;
  /** Connections and questions for names that were refused. */
  readonly refused: number;
  /** The first different ones. */
  readonly refusals: readonly NetworkRefusal[];
}

/** The end of what a tool printed. */
export interface ToolOutput {
  readonly stdout: StreamEnd;
  readonly stderr: StreamEnd;
}

/** The end of a stream. */
export interface StreamEnd {
  readonly text: string;
  /** Bytes before it. */
  readonly droppedBytes: number;
}

/** Resource usage of an execution; undefined where unmeasured. */
export interface ExecutionUsage {
  readonly wallMs: number;
  readonly cpuMs: number | undefined;
  readonly peakMemoryBytes: number | undefined;
  readonly peakProcesses: number | undefined;
  /** Bytes of saved artifacts. */
  readonly outputBytes: number;
}

/** A limit by its word in answers, and its enforcement. */
export interface EnforcedLimit {
  readonly limit: string;
  readonly bound: number;
  readonly unit: LimitUnit;
  readonly by: Mechanism;
}

/** The limits of an execution in the order of the documentation, its time limit last. */
export function enforcedLimits({
  limits,
  enforcedBy,
  timeLimitMs,
}: Pick<ExecutionReport, "limits" | "enforcedBy" | "timeLimitMs">): readonly EnforcedLimit[] {
  const all = limitNames.map((name): EnforcedLimit => {
    const { word: limit, unit } = limitFacts[name];
    return { limit, bound: limits[name], unit, by: enforcedBy[name] };
  });
  return [...all, { limit: "wall_time", bound: timeLimitMs / 1000, unit: "seconds", by: "guard" }];
}

/** The member `execution` of an answer. */
export function executionBody(report: ExecutionReport): object {
  const { usage, output, network, calls } = report;
  const limits = enforcedLimits(report).map(
    ({ limit, bound, unit, by }) => [limit, { bound, unit, by }] as const,
  );
  return {
    profile: report.profile,
    backend: report.backend,
    start: report.start,
    limits_enforced: Object.fromEntries(limits),
    unenforced: report.unenforced,
    usage: {
      wall_ms: Math.round(usage.wallMs),
      cpu_ms: rounded(usage.cpuMs),
      peak_memory_bytes: rounded(usage.peakMemoryBytes),
      peak_processes: rounded(usage.peakProcesses),
      output_bytes: usage.outputBytes,
    },
    ...(network && { network: networkBody(network) }),
    ...(calls && gatewayBody(calls)),
    ...(output && {
      output: { stdout: streamBody(output.stdout), stderr: streamBody(output.stderr) },
    }),
  };
}

function gatewayBody({ calls, omittedCalls, closedBecause }: GatewayReport): object {
  return {
    tool_calls: calls.map(({ startMs, durationMs, ...call }) => ({
      ...call,
      start_ms: Math.round(startMs),
      duration_ms: Math.round(durationMs),
    })),
    ...(omittedCalls > 0 && { tool_calls_omitted: omittedCalls }),
    ...(closedBecause !== undefined && { gateway: { closed: closedBecause } }),
  };
}

function networkBody(usage: NetworkUsage): object {
  return {
    connections: usage.connections,
    sent_bytes: usage.sentBytes,
    received_bytes: usage.receivedBytes,
    refused: usage.refused,
    refusals: usage.refusals,
  };
}

function streamBody({ text, droppedBytes }: StreamEnd): object {
  return { text, dropped_bytes: droppedBytes };
}

/** Members of an error's `data` for the limit that ended the call. */
export function limitBody(reached: LimitReached | RefusalsReached): object {
  if (reached.limit === "toolCalls")
    return { limit: "tool_calls", bound: reached.bound, unit: "count" };
  const { limit, bound, peak } = reached;
  const { word, unit } = limitFacts[limit];
  return { limit: word, bound, peak: peak && Math.round(peak * 1000) / 1000, unit };
}

function rounded(value: number | undefined): number | undefined {
  return value === undefined ? undefined : Math.round(value);
}
