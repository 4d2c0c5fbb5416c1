/**
 * What became of a chaos, and which promises were broken in it.
 */
import type { ChaosOptions } from "./chaos-options.ts";
import type { ChaosTool } from "./chaos-workers.ts";

/** One call. */
export interface ChaosCall {
  readonly id: string;
  readonly tool: ChaosTool;
  /** How it was answered; `none` when it was not. */
  readonly ending: string;
  /** The workers in which its tool began. */
  readonly ranIn: readonly string[];
  /** How often it can have come back to its queue, at most. */
  readonly losses: number;
}

export interface ChaosReport {
  readonly calls: readonly ChaosCall[];
  readonly kills: number;
  readonly cuts: number;
}

/** What was promised and not kept, a line for each call; and whether there was so little chaos that it shows nothing. */
export function brokenPromises(
  { calls, kills, cuts }: ChaosReport,
  options: ChaosOptions,
): readonly string[] {
  const broken = calls.flatMap((call) => {
    const problem = problemOf(call, options);
    const { id, tool, ending, ranIn, losses } = call;
    const facts = `${tool}, ${ending}, ran in [${ranIn.join(" ")}], at most ${losses} losses`;
    return problem === undefined ? [] : [`${id} ${problem}: ${facts}`];
  });
  if (calls.length !== options.calls) broken.push(`${calls.length} calls were made`);
  if (kills === 0 || cuts === 0) broken.push(`there were ${kills} kills and ${cuts} cuts`);
  // Such a tool may also be answered that it was not run again: of all its calls that would be cheap.
  const isUsed = calls.some(({ tool, ending }) => tool === "once" && ending === "success");
  if (!isUsed) broken.push("no call of a tool that must not run twice succeeded");
  return broken;
}

function problemOf(
  { tool, ending, ranIn, losses }: ChaosCall,
  { maxDeliveries }: ChaosOptions,
): string | undefined {
  const mayEnd =
    ending === "success" ||
    (tool === "once" && ending.startsWith("NOT_REPEATED")) ||
    // It is given up one delivery before the last, and the first delivery needs no loss.
    (ending.startsWith("POISONED") && losses >= maxDeliveries - 2);
  if (!mayEnd) return "was not answered as it has to be";
  if (ending === "success" && ranIn.length === 0) return "succeeded without being run";
  if (tool === "once" && ranIn.length > 1) return "ran again, which it must not";
  if (new Set(ranIn).size < ranIn.length) return "ran again in a worker that knew it";
  return undefined;
}
