/**
 * What came of attacks, for people and for machines. docs/attacks.md documents both.
 */
import type { AttackGroup } from "./attack.ts";
import type { ControlRun } from "./control.ts";

/** What can be said of one attack under one profile: the words of the JSON, with those of the table. */
export const attackVerdicts = {
  /** It did not reach what it is after, and does where nothing holds it. */
  held: "held",
  /** It reached what it is after. */
  "not-held": "NOT HELD",
  /** The profile allows it on purpose. */
  "not-promised": "not promised",
  /** It did not reach what it is after, and cannot do so on this host even where nothing holds it. */
  "no-control": "no control",
  /** It does not even reach what it is after where nothing holds it, or did not run. */
  broken: "BROKEN",
} as const;

/** What is said of one attack under one profile. */
export type AttackVerdict = keyof typeof attackVerdicts;

/** One attack under one profile. */
export interface AttackRow {
  readonly id: string;
  readonly group: AttackGroup;
  readonly title: string;
  readonly profile: string;
  readonly verdict: AttackVerdict;
  /** Why it is not promised, has no control or is broken. */
  readonly reason: string | undefined;
  /** What the attack, or who judges it, saw. */
  readonly evidence: string;
  readonly durationMs: number;
  readonly control: ControlRun;
}

/** A profile that was attacked. */
export interface AttackedProfile {
  readonly name: string;
  /** Whether a tool that does nothing wrong works in it. */
  readonly works: boolean;
  readonly evidence: string;
  /** Protections that this host does not allow. */
  readonly unenforced: readonly string[];
}

/** Everything that came of a run. */
export interface AttackReport {
  readonly profiles: readonly AttackedProfile[];
  readonly rows: readonly AttackRow[];
}

/** Characters of evidence in a line of the table; the JSON has all of it. */
const maxEvidence = 90;

/** Whether everything holds that should: no attack reached, none is broken, and tools work. */
export function allHeld({ profiles, rows }: AttackReport): boolean {
  return !rows.some(isFailure) && profiles.every(({ works }) => works);
}

/** The JSON, as docs/attacks.md documents it. */
export function attackJson(report: AttackReport): string {
  const body = {
    ok: allHeld(report),
    profiles: report.profiles.map(({ name, works, evidence, unenforced }) => {
      return { profile: name, works, evidence, unenforced };
    }),
    attacks: report.rows.map(({ durationMs, control, ...row }) => ({
      ...row,
      ms: durationMs,
      control: { reached: control.reached, evidence: control.evidence, ms: control.durationMs },
    })),
  };
  return JSON.stringify(body, undefined, 2);
}

/** The table, with a summary below it and everything that is known of what failed. */
export function attackTable(report: AttackReport): string {
  const { profiles, rows } = report;
  const widths = [
    widest(Object.values(attackVerdicts)),
    widest(profiles.map(({ name }) => name)),
    widest(rows.map(({ id }) => id)),
  ];
  const lines = rows.map(({ verdict, profile, id, reason, evidence }) => {
    const cells = [attackVerdicts[verdict], profile, id];
    const padded = cells.map((cell, index) => cell.padEnd(widths[index] ?? 0));
    return [...padded, shortened(reason ?? evidence)].join("  ").trimEnd();
  });
  return [...lines, "", ...rows.filter(isFailure).flatMap(details), ...profiles.map(summary)].join(
    "\n",
  );

  function summary({ name, works, evidence, unenforced }: AttackedProfile): string {
    const own = rows.filter(({ profile }) => profile === name);
    const counts = Object.entries(attackVerdicts).flatMap(([verdict, words]) => {
      const count = own.filter((row) => row.verdict === verdict).length;
      return count === 0 ? [] : [`${count} ${words}`];
    });
    const gaps = unenforced.length === 0 ? [] : [`not enforced here: ${unenforced.join(", ")}`];
    const use = works ? "tools work" : `TOOLS DO NOT WORK: ${evidence}`;
    return `${name}: ${[counts.join(", "), use, ...gaps].join("; ")}`;
  }
}

/** Whether a row fails the run. */
export function isFailure({ verdict }: AttackRow): boolean {
  return verdict === "not-held" || verdict === "broken";
}

function details({ verdict, profile, id, title, reason, evidence, control }: AttackRow): string[] {
  return [
    `${attackVerdicts[verdict]}: ${id} under ${profile} (${title})`,
    ...(reason === undefined ? [] : [`  ${reason}`]),
    `  in the sandbox: ${evidence}`,
    `  where nothing holds it: ${control.reached ? "" : "not reached: "}${control.evidence}`,
    "",
  ];
}

function widest(texts: readonly string[]): number {
  return Math.max(0, ...texts.map(({ length }) => length));
}

function shortened(text: string): string {
  return text.length <= maxEvidence ? text : `${text.slice(0, maxEvidence - 1)}…`;
}
