/**
 * How far a run of attacks is, as people see it who wait.
 */
import { describe, expect, test } from "vitest";
import type { AttackRow, AttackVerdict } from "../../../worker/doctor/attacks/attack-report.ts";
import { AttackProgress } from "../../../worker/doctor/progress.ts";

function row(verdict: AttackVerdict): AttackRow {
  const baseline = { reached: true, evidence: "reached it", durationMs: 5 };
  const what = { id: "some_attack", group: "files", title: "try" } as const;
  const where = { profile: "standard", start: "cold" } as const;
  return { ...what, ...where, verdict, reason: undefined, evidence: "e", durationMs: 7, baseline };
}

function run(screen: { isTTY?: boolean; columns?: number }): readonly string[] {
  const written: string[] = [];
  const write = (text: string): number => written.push(text);
  {
    using progress = new AttackProgress({ ...screen, write }, 3);
    progress.add(row("held"));
    progress.plan(4);
    progress.add(row("not-held"));
    progress.add(row("not-promised"));
  }
  return written;
}

describe("the progress of attacks", () => {
  test("is one line of a terminal, written over, and gone in the end", () => {
    expect(run({ isTTY: true, columns: 100 })).toEqual([
      "\u001b[2K0 of 3 attacks; making everything ready\r",
      "\u001b[2K1 of 3 attacks; held: some_attack under standard, cold\r",
      "\u001b[2K2 of 4 attacks, 1 FAILED; NOT HELD: some_attack under standard, cold\r",
      "\u001b[2K3 of 4 attacks, 1 FAILED; not promised: some_attack under standard, cold\r",
      "\u001b[2K\r",
    ]);
  });

  test("never fills a line, which could not be written over then", () => {
    for (const text of run({ isTTY: true, columns: 30 }))
      // Two sequences that move nothing: of four characters and of one.
      expect(text.length - 5).toBeLessThan(30);
  });

  test("is not told to a file or a pipe", () => {
    expect(run({ columns: 100 })).toEqual([]);
    expect(run({ isTTY: false })).toEqual([]);
  });
});
