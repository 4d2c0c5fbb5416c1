/**
 * The report of a run, as table and as JSON. docs/attacks.md promises both, and with them the names
 * `held` and `control`, which the code calls blocked and baseline.
 */
import type { StartKind } from "../../protocol/execution.ts";
import type { AttackGroup } from "./attack.ts";
import type { AttackStart } from "./attack-starts.ts";
import type { BaselineRun } from "./baseline.ts";

/** Verdicts on one attack under one profile by one start: names in the JSON, and in the table. */
export const attackVerdicts = {
  /** The attack missed its target, and its baseline reached it. */
  held: "held",
  /** The attack reached its target. */
  "not-held": "NOT HELD",
  /** The profile allows it on purpose. */
  "not-promised": "not promised",
  /** The attack missed its target, and its baseline cannot reach it on this host. */
  "no-control": "no control",
  /** The baseline missed the target, or the attack did not run, or not by its start. */
  broken: "BROKEN",
} as const;

/** Verdict on one attack under one profile by one start. */
export type AttackVerdict = keyof typeof attackVerdicts;

/** One attack under one profile by one start. */
export interface AttackRow {
  readonly id: string;
  readonly group: AttackGroup;
  readonly title: string;
  readonly profile: string;
  readonly start: AttackStart;
  readonly verdict: AttackVerdict;
  /** The cause of `not-promised`, `no-control` and `broken`. */
  readonly reason: string | undefined;
  /** The observation of the attack, or of its judge. */
  readonly evidence: string;
  readonly durationMs: number;
  readonly baseline: BaselineRun;
}

/** An attacked profile, by one start of calls. */
export interface AttackedProfile {
  readonly name: string;
  readonly start: StartKind;
  /** Whether the harmless tool gets that start and works. */
  readonly works: boolean;
  readonly evidence: string;
  /** Protections that this host denies. */
  readonly unenforced: readonly string[];
}

/** The results of a run. */
export interface AttackReport {
  readonly profiles: readonly AttackedProfile[];
  readonly rows: readonly AttackRow[];
}

/** Characters of evidence in a row of the table; the JSON has the whole text. */
const maxEvidence = 90;

/** Whether no promised attack reached its target, none is broken, and tools work. */
export function allHeld({ profiles, rows }: AttackReport): boolean {
  return !rows.some(isFailure) && profiles.every(({ works }) => works);
}

/** The report as JSON. */
export function attackJson(report: AttackReport): string {
  const body = {
    ok: allHeld(report),
    profiles: report.profiles.map(({ name, start, works, evidence, unenforced }) => {
      return { profile: name, start, works, evidence, unenforced };
    }),
    attacks: report.rows.map(({ durationMs, baseline, ...row }) => ({
      ...row,
      ms: durationMs,
      control: { reached: baseline.reached, evidence: baseline.evidence, ms: baseline.durationMs },
    })),
  };
  return JSON.stringify(body, undefined, 2);
}

/** The report as a table, with the details of each failure and a summary below it. */
export function attackTable(report: AttackReport): string {
  const { profiles, rows } = report;
  const widths = [
    widest(Object.values(attackVerdicts)),
    widest(profiles.map(({ name }) => name)),
    widest(rows.map(({ start }) => start)),
    widest(rows.map(({ id }) => id)),
  ];
  const lines = rows.map(({ verdict, profile, start, id, reason, evidence }) => {
    const cells = [attackVerdicts[verdict], profile, start, id];
    const padded = cells.map((cell, index) => cell.padEnd(widths[index] ?? 0));
    return [...padded, shortened(reason ?? evidence)].join("  ").trimEnd();
  });
  const summaries = profiles.flatMap((profile) => summary(profile, rows));
  return [...lines, "", ...rows.filter(isFailure).flatMap(details), ...summaries].join("\n");
}

/** A line for the calls of a start, and one for its imports. */
function summary(
  { name, start, works, evidence, unenforced }: AttackedProfile,
  rows: readonly AttackRow[],
): readonly string[] {
  const gaps = unenforced.length === 0 ? [] : [`not enforced here: ${unenforced.join(", ")}`];
  const use = works ? "tools work" : `TOOLS DO NOT WORK: ${evidence}`;
  const facts = (of: AttackStart): readonly string[] => {
    const counts = countsOf(rows.filter((row) => row.profile === name && row.start === of));
    return counts === "" ? [] : [counts];
  };
  const imports = start === "template" ? facts("import") : [];
  return [
    `${name}, ${start}: ${[...facts(start), use, ...gaps].join("; ")}`,
    ...imports.map((counts) => `${name}, import: ${counts}`),
  ];
}

function countsOf(rows: readonly AttackRow[]): string {
  const counts = Object.entries(attackVerdicts).flatMap(([verdict, words]) => {
    const count = rows.filter((row) => row.verdict === verdict).length;
    return count === 0 ? [] : [`${count} ${words}`];
  });
  return counts.join(", ");
}

/** Whether a row fails the run. */
export function isFailure({ verdict }: AttackRow): boolean {
  return verdict === "not-held" || verdict === "broken";
}

function details(row: AttackRow): string[] {
  const { verdict, profile, start, id, title, reason, evidence, baseline } = row;
  return [
    `${attackVerdicts[verdict]}: ${id} under ${profile}, ${start} (${title})`,
    ...(reason === undefined ? [] : [`  ${reason}`]),
    `  in the sandbox: ${evidence}`,
    `  where nothing holds it: ${baseline.reached ? "" : "not reached: "}${baseline.evidence}`,
    "",
  ];
}

function widest(texts: readonly string[]): number {
  return Math.max(0, ...texts.map(({ length }) => length));
}

function shortened(text: string): string {
  return text.length <= maxEvidence ? text : `${text.slice(0, maxEvidence - 1)}…`;
}
