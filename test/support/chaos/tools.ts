/**
 * The tools of a chaos, which every worker has.
 */
import type { RigTool } from "../workers/rig.ts";

/** How they differ. */
interface ChaosToolKind {
  /** What a run takes. */
  readonly seconds: number;
  readonly idempotent: boolean;
  readonly queue: string;
}

const kinds = {
  short: { seconds: 0.05, idempotent: true, queue: "default" },
  long: { seconds: 1, idempotent: true, queue: "heavy" },
  /** Must not run twice. */
  once: { seconds: 0.3, idempotent: false, queue: "default" },
} as const satisfies Readonly<Record<string, ChaosToolKind>>;

export type ChaosTool = keyof typeof kinds;

export const chaosTools = Object.keys(kinds) as readonly ChaosTool[];

/** Queues of the group, with the slots that each worker has for their calls. */
export const chaosQueues: Readonly<Record<string, number>> = { default: 2, heavy: 2 };

/** Calls are for these, in turns. */
const turns: readonly ChaosTool[] = ["short", "once", "short", "once", "long"];

/** The name of a call's first or later attempt. */
export function requestName(call: number, attempt: number): string {
  return `call-${call}-${attempt}`;
}

/** The call of a request. */
export function callOf(request: string): number {
  return Number(request.split("-")[1]);
}

/** The tool of a request. */
export function toolOf(request: string): ChaosTool {
  return turns[callOf(request) % turns.length]!;
}

/** What a run of a tool takes. */
export function secondsOf(tool: ChaosTool): number {
  return kinds[tool].seconds;
}

/** Every seventh call, of each tool in its turn, is cancelled. */
const callsPerCancel = 7;

/**
 * Milliseconds after which a request is cancelled; undefined for most. A call may be on any part of
 * its way then, or answered.
 */
export function cancelledAfterMs(request: string): number | undefined {
  const call = callOf(request);
  if (call % callsPerCancel !== callsPerCancel - 1) return undefined;
  const seconds = secondsOf(toolOf(request));
  return Math.floor(call / callsPerCancel) % 2 === 0 ? 0 : seconds * 500;
}

/** Whether a tool may run more than once for a call. */
export function isRepeatable(tool: ChaosTool): boolean {
  return kinds[tool].idempotent;
}

/** The entries of a manifest, but for those that are left out. */
export function chaosEntries(without: ReadonlySet<ChaosTool>): Readonly<Record<string, RigTool>> {
  const tools = chaosTools.filter((tool) => !without.has(tool));
  const common = {
    module: "effect",
    function: "run",
    network: "host",
    timeout_seconds: 60,
  } as const;
  return Object.fromEntries(
    tools.map((tool) => {
      const { idempotent, queue } = kinds[tool];
      return [tool, { ...common, idempotent, queue }];
    }),
  );
}
