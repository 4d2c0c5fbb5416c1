/**
 * From what was seen of an attack and of its control to what is said of the sandbox.
 */
import type { Attack, Observation } from "./attack.ts";
import type { AttackVerdict } from "./attack-report.ts";
import type { ControlRun } from "./control.ts";
import { type ProgramAnswer, readProgramAnswer } from "./program.ts";

/** What a run in the real sandbox says. */
export interface Judgement {
  /** Undefined when nobody can say. */
  readonly held: boolean | undefined;
  readonly evidence: string;
}

/** Judges a run. A call that no sandbox ran for, or that nobody can judge, proves nothing. */
export function judge(attack: Pick<Attack, "judge">, observation: Observation): Judgement {
  const { outcome } = observation;
  const ran = outcome.kind !== "given-up" && outcome.execution !== undefined;
  if (ran && attack.judge !== undefined) return attack.judge(observation);
  const answer = ownAnswer(observation);
  if (answer === undefined) return { held: undefined, evidence: endingOf(observation) };
  return { held: !answer.reached, evidence: answer.evidence };
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

/** What is to be said of an attack under a profile, and why if that is not plain. */
export function verdictOn(
  attack: Pick<Attack, "noControl">,
  notPromised: string | undefined,
  unenforced: readonly string[],
  held: Judgement["held"],
  control: Pick<ControlRun, "reached">,
): { readonly verdict: AttackVerdict; readonly reason: string | undefined } {
  const says = (verdict: AttackVerdict, reason?: string) => ({ verdict, reason });
  if (held === undefined) return says("broken", "it did not run to an answer in the sandbox");
  if (!held)
    return notPromised === undefined ? says("not-held") : says("not-promised", notPromised);
  if (!control.reached) {
    const noControl = attack.noControl?.(unenforced);
    return noControl === undefined
      ? says("broken", "it does not reach what it is after where nothing holds it")
      : says("no-control", noControl);
  }
  return notPromised === undefined ? says("held") : says("not-promised", notPromised);
}
