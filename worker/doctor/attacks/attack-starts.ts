/**
 * How attacks come to their sandboxes: by each start that calls have, and by the import of a tool's
 * module.
 */
import { type StartKind, startKinds } from "../../protocol/execution.ts";
import type { Attack, AttackGroup } from "./attack.ts";

/**
 * `import`: the attack is made by the import of its module, in a template; its call tells what came
 * of that.
 */
export const attackStarts = [...startKinds, "import"] as const;
export type AttackStart = (typeof attackStarts)[number];

/**
 * What can be asked for: one start, all of them, or the usual ones, which are `cold` and what tools
 * get by `auto`.
 */
export const startChoices = [...startKinds, "all", "usual"] as const;
export type StartChoice = (typeof startChoices)[number];

/**
 * What imports are made to attack. The others are after what only a call has: its work directory,
 * its answer, its limits, and calls that come later.
 */
const groupsAtImport: readonly AttackGroup[] = [
  "files",
  "processes",
  "privileges",
  "kernel",
  "network",
];

/** The start of the call. */
export function startOfCall(start: AttackStart): StartKind {
  return start === "import" ? "template" : start;
}

/** The starts to be attacked, in the order of the report. */
export function startsToAttack(choice: StartChoice, auto: StartKind): readonly AttackStart[] {
  const kinds = kindsOf(choice, auto);
  return attackStarts.filter((start) => kinds.includes(startOfCall(start)));
}

/** Whether an attack is made by a start. */
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
