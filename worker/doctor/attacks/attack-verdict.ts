/**
 * Judges the sandbox by the observations of an attack and of its baseline.
 */
import type { StartKind } from "../../protocol/execution.ts";
import type { Attack, Observation } from "./attack.ts";
import type { AttackVerdict } from "./attack-report.ts";
import { type AttackStart, startOfCall } from "./attack-starts.ts";
import type { BaselineRun } from "./baseline.ts";
import { type ProgramAnswer, readProgramAnswer } from "../program.ts";

/** Judgement of a run in the real sandbox; `reason` is why it proves nothing. */
export type Judgement =
  | { readonly blocked: boolean; readonly evidence: string }
  | { readonly blocked: undefined; readonly reason: string; readonly evidence: string };

const noAnswer = "it did not run to an answer in the sandbox";

/** Judges a run. A call without a sandbox, with another start or without an answer is undecided. */
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
  // An attack at import is over before its call.
  const isJudged = ran !== undefined && start !== "import";
  const verdict = isJudged ? attack.judge?.(observation) : undefined;
  if (verdict !== undefined) return verdict;
  const answer = ownAnswer(observation);
  if (answer === undefined)
    return { blocked: undefined, reason: noAnswer, evidence: endingOf(observation) };
  return { blocked: !answer.reached, evidence: answer.evidence };
}

/** Start mode of the call's sandbox; undefined when none ran. */
export function startSeen({ outcome }: Pick<Observation, "outcome">): StartKind | undefined {
  return outcome.execution?.start;
}

/** The problem of a call that had another start than intended, or no sandbox. */
export function wrongStart(
  start: AttackStart,
  ran: StartKind | undefined,
  notReady?: string,
): string {
  const why = notReady === undefined ? "" : `, since no sandbox was ready: ${notReady}`;
  return `its call was to have the start ${startOfCall(start)}, and had ${ran ?? "no sandbox"}${why}`;
}

/** The program's own answer; undefined when it gave none. */
export function ownAnswer({ outcome }: Pick<Observation, "outcome">): ProgramAnswer | undefined {
  return outcome.kind === "success" ? readProgramAnswer(outcome.toolResult) : undefined;
}

/** The end of the call, in a few words. */
export function endingOf({ outcome }: Pick<Observation, "outcome">): string {
  return outcome.kind === "error"
    ? `${outcome.error.code}: ${outcome.error.message}`
    : `the call ended as ${outcome.kind}`;
}

/** The verdict on an attack, with a reason unless it is plain. */
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
