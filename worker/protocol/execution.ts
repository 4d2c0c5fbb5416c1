/**
 * What an answer says of the sandbox that ran: which one, what it was bound by, what it used.
 */
import {
  type LimitReached,
  type Limits,
  type Mechanism,
  type LimitName,
  limitFacts,
  limitNames,
} from "./resource-limits.ts";

/**
 * How a call came to its sandbox. `cold`: it was made for the call. `pool`: it was made before, and
 * had loaded the tool. `template`: it was made before, as a copy of a process that had loaded the
 * tool. Each serves one call, whatever it was.
 */
export const startKinds = ["cold", "pool", "template"] as const;
export type StartKind = (typeof startKinds)[number];

/** The truth about one execution. */
export interface ExecutionReport {
  readonly profile: string;
  readonly backend: string;
  readonly start: StartKind;
  readonly limits: Limits;
  /** Who kept each limit. */
  readonly enforcedBy: Readonly<Record<LimitName, Mechanism>>;
  /** Milliseconds that the tool was granted. */
  readonly timeLimitMs: number;
  /** Protections that this host does not allow. */
  readonly unenforced: readonly string[];
  readonly usage: ExecutionUsage;
}

/** What the execution used. A member is undefined where nobody measured it. */
export interface ExecutionUsage {
  readonly wallMs: number;
  readonly cpuMs: number | undefined;
  readonly peakMemoryBytes: number | undefined;
  readonly peakProcesses: number | undefined;
  /** Bytes that became artifacts. */
  readonly outputBytes: number;
}

/**
 * The member `execution` of an answer. Members that are undefined are left out by JSON.stringify.
 */
export function executionBody(report: ExecutionReport): object {
  const { usage } = report;
  const limits = limitNames.map((name) => {
    const { word, unit } = limitFacts[name];
    return [word, { bound: report.limits[name], unit, by: report.enforcedBy[name] }] as const;
  });
  const wall = { bound: report.timeLimitMs / 1000, unit: "seconds", by: "guard" };
  return {
    profile: report.profile,
    backend: report.backend,
    start: report.start,
    limits_enforced: { ...Object.fromEntries(limits), wall_time: wall },
    unenforced: report.unenforced,
    usage: {
      wall_ms: Math.round(usage.wallMs),
      cpu_ms: rounded(usage.cpuMs),
      peak_memory_bytes: rounded(usage.peakMemoryBytes),
      peak_processes: rounded(usage.peakProcesses),
      output_bytes: usage.outputBytes,
    },
  };
}

/** The members of an error's `data` that name the limit which ended the call. */
export function limitBody({ limit, bound, peak }: LimitReached): object {
  const { word, unit } = limitFacts[limit];
  return { limit: word, bound, peak: peak && Math.round(peak * 1000) / 1000, unit };
}

function rounded(value: number | undefined): number | undefined {
  return value === undefined ? undefined : Math.round(value);
}
