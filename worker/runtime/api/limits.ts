/**
 * Limits of an execution, and what is known of who keeps them.
 */
import { RuntimeError } from "./errors.ts";

/** Zero, and a limit that is not given, is unlimited. */
export interface RuntimeLimits {
  readonly maxToolCalls?: number;
  /** Steps of one chain. */
  readonly maxChainSteps?: number;
  /** Milliseconds of processor time. */
  readonly cpuQuotaMillis?: number;
  readonly memoryBytes?: number;
  /** Processes and threads. */
  readonly pidsMax?: number;
  readonly diskBytes?: number;
}

/** The names of limits in errors are those of the runtimes that this one is compatible with. */
const limitNames = {
  maxToolCalls: "MaxToolCalls",
  maxChainSteps: "MaxChainSteps",
  cpuQuotaMillis: "CPUQuotaMillis",
  memoryBytes: "MemoryBytes",
  pidsMax: "PidsMax",
  diskBytes: "DiskBytes",
} as const satisfies Record<keyof RuntimeLimits, string>;

/** Every limit that is a number, in this order. */
export const runtimeLimitNames = Object.keys(limitNames) as readonly (keyof RuntimeLimits)[];

/** Every limit, the time included. */
export const limitKinds = [
  "timeout",
  "toolCalls",
  "chainSteps",
  "memory",
  "cpu",
  "pids",
  "disk",
] as const;
export type LimitKind = (typeof limitKinds)[number];

/** The member of {@link RuntimeLimits} that sets a limit; the time has a member of the request. */
export const limitOfKind = {
  toolCalls: "maxToolCalls",
  chainSteps: "maxChainSteps",
  memory: "memoryBytes",
  cpu: "cpuQuotaMillis",
  pids: "pidsMax",
  disk: "diskBytes",
} as const satisfies Record<Exclude<LimitKind, "timeout">, keyof RuntimeLimits>;

/**
 * Who keeps a limit. `kernel`: it cannot be exceeded. `guard`: somebody looks, and ends what is
 * over it. `engine`: the interpreter or the gateway refuses. `absent`: nothing of the kind exists
 * inside.
 */
export const enforcers = ["kernel", "guard", "engine", "absent"] as const;
export type Enforcer = (typeof enforcers)[number];

/** The limits that a backend has been seen to keep on this host. */
export type Evidence = Readonly<Partial<Record<LimitKind, Enforcer>>>;

/** The numbers of a request, each Infinity where unlimited. */
export type BoundLimits = Readonly<Record<keyof RuntimeLimits, number>>;

/** Throws RuntimeError `INVALID_LIMITS` for the first limit that is none. */
export function boundLimits(limits: RuntimeLimits = {}): BoundLimits {
  const bounds = runtimeLimitNames.map((name) => {
    const value: unknown = limits[name] ?? 0;
    if (!Number.isSafeInteger(value)) throw invalid(name, "must be a whole number");
    const bound = Number(value);
    if (bound < 0) throw invalid(name, "cannot be negative");
    return [name, bound === 0 ? Infinity : bound] as const;
  });
  return Object.fromEntries(bounds) as BoundLimits;
}

function invalid(name: keyof RuntimeLimits, problem: string): RuntimeError {
  return new RuntimeError("INVALID_LIMITS", {
    detail: `${limitNames[name]} ${problem}`,
    op: "validate",
  });
}
