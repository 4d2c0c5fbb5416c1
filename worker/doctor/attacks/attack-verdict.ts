/**
 * From what was seen of an attack and of its baseline to what is said of the sandbox.
 */
import type { StartKind } from "../../protocol/execution.ts";
import type { Attack, Observation } from "./attack.ts";
import type { AttackVerdict } from "./attack-report.ts";
import { type AttackStart, startOfCall } from "./attack-starts.ts";
import type { BaselineRun } from "./baseline.ts";
import { type ProgramAnswer, readProgramAnswer } from "../program.ts";

/** What a run in the real sandbox says; `reason` is why nobody can say. */
export type Judgement =
  | { readonly blocked: boolean; readonly evidence: string }
  | { readonly blocked: undefined; readonly reason: string; readonly evidence: string };

const noAnswer = "it did not run to an answer in the sandbox";

/**
 * Judges a run. A call that no sandbox ran for, that came to its sandbox otherwise than it was to,
 * or that nobody can judge, proves nothing.
 */
export function judge(
  attack: Pick<Attack, "judge">,
  observation: Observation,
  start: AttackStart,
): Judgement {
  const ran = startSeen(observation);
  if (ran !== undefined && ran !== startOfCall(start))
    return {
      blocked: undefined,
      reason: wrongStart(start, ran, observation.notReady),
      evidence: endingOf(observation),
    };
  // What an import did is over when its call comes.
  if (ran !== undefined && start !== "import" && attack.judge !== undefined)
    return attack.judge(observation);
  const answer = ownAnswer(observation);
  if (answer === undefined)
    return { blocked: undefined, reason: noAnswer, evidence: endingOf(observation) };
  return { blocked: !answer.reached, evidence: answer.evidence };
}

/** How the call came to its sandbox, or undefined when none ran for it. */
export function startSeen({ outcome }: Pick<Observation, "outcome">): StartKind | undefined {
  return outcome.kind === "cancelled" ? undefined : outcome.execution?.start;
}

/** What is wrong with a call that had another start than it was to have. */
export function wrongStart(start: AttackStart, ran: StartKind, notReady?: string): string {
  const why = notReady === undefined ? "" : `, since no sandbox was ready: ${notReady}`;
  return `its call was to have the start ${startOfCall(start)}, and had ${ran}${why}`;
}

/** What the program itself said, or undefined when it did not get to that. */
export function ownAnswer({ outcome }: Pick<Observation, "outcome">): ProgramAnswer | undefined {
  return outcome.kind === "success" ? readProgramAnswer(outcome.toolResult) : undefined;
}

/** How the call ended, in a few words. */
export function endingOf({ outcome }: Pick<Observation, "outcome">): string {
  return outcome.kind === "error"
    ? `${outcome.error.code}: ${outcome.error.message}`
    : `the call ended as ${outcome.kind}`;
}

/** What is to be said of an attack, and why if that is not plain. */
export function verdictOn(
  attack: Pick<Attack, "noBaseline">,
  notPromised: string | undefined,
  unenforced: readonly string[],
  judgement: Judgement,
  baseline: Pick<BaselineRun, "reached">,
): { readonly verdict: AttackVerdict; readonly reason: string | undefined } {
  const says = (verdict: AttackVerdict, reason?: string) => ({ verdict, reason });
  if (judgement.blocked === undefined) return says("broken", judgement.reason);
  if (!judgement.blocked)
    return notPromised === undefined ? says("not-held") : says("not-promised", notPromised);
  if (!baseline.reached) {
    const noBaseline = attack.noBaseline?.(unenforced);
    return noBaseline === undefined
      ? says("broken", "it does not reach what it is after where nothing holds it")
      : says("no-control", noBaseline);
  }
  return notPromised === undefined ? says("held") : says("not-promised", notPromised);
}
