/**
 * The starts of attacks: the start modes of calls, and the import of a tool's module.
 */
import { type StartKind, startKinds } from "../../protocol/execution.ts";
import type { Attack, AttackGroup } from "./attack.ts";

/** `import`: the attack runs when a template imports its module; its call returns the answer. */
export const attackStarts = [...startKinds, "import"] as const;
export type AttackStart = (typeof attackStarts)[number];

/** Values of `--start`; `usual`, the default, is `cold` and the start mode of `auto`. */
export const startChoices = [...startKinds, "all", "usual"] as const;
export type StartChoice = (typeof startChoices)[number];

/** Groups that run at import. The others target a call's files, answer, limits or successors. */
const groupsAtImport: readonly AttackGroup[] = [
  "files",
  "processes",
  "privileges",
  "kernel",
  "network",
];

/** Start mode of the call. */
export function startOfCall(start: AttackStart): StartKind {
  return start === "import" ? "template" : start;
}

/** The starts to attack, in the order of the report. */
export function startsToAttack(choice: StartChoice, auto: StartKind): readonly AttackStart[] {
  const kinds = kindsOf(choice, auto);
  return attackStarts.filter((start) => kinds.includes(startOfCall(start)));
}

/** Whether an attack runs by a start. */
export function isMade({ group }: Pick<Attack, "group">, start: AttackStart): boolean {
  return start !== "import" || groupsAtImport.includes(group);
}

function kindsOf(choice: StartChoice, auto: StartKind): readonly StartKind[] {
  switch (choice) {
    case "usual":
      return ["cold", auto];
    case "all":
      return startKinds;
    default:
      return [choice];
  }
}
