/**
 * Runs attacks in this host's real sandbox, each with its baseline, and reports the verdicts.
 */
import { join } from "node:path";
import { openStore } from "../artifacts/open.ts";
import type { Attack } from "./attacks/attack.ts";
import { RecordingStore } from "./attacks/attack-call.ts";
import { attackable, loweredProfiles } from "./attacks/attack-profile.ts";
import type { AttackReport, AttackRow, AttackedProfile } from "./attacks/attack-report.ts";
import { isMade } from "./attacks/attack-starts.ts";
import type { BaselineRun } from "./attacks/baseline.ts";
import { plantCanaries } from "./attacks/canaries.ts";
import { ProfileRun } from "./profile-run.ts";

import type { AttackOptions } from "./attacks/attack-options.ts";
/**
 * Runs every attack under every profile by every start, in sequence, and each baseline once.
 * Rejects with the errors of `open`, with the signal's reason, and, before any canary is planted,
 * with SandboxError for a profile that does not exist or has no sandbox.
 */
export async function runAttacks(
  options: AttackOptions,
  signal: AbortSignal,
): Promise<AttackReport> {
  const { attacks } = options;
  const known = loweredProfiles(options.known);
  const profiles = options.profiles.map((name) => attackable(known, name));
  if (profiles.length === 0) throw new Error("no profile is to be attacked");
  await using canaries = await plantCanaries(options.canaryDirs, options.uid);
  await using store = new RecordingStore(await openStore({ kind: "memory" }));

  const checked: AttackedProfile[] = [];
  const rows: AttackRow[] = [];
  const baselines = new Map<Attack, BaselineRun>();
  for (const [index, profile] of profiles.entries()) {
    const parts = { options, known, canaries, store, profile };
    const directory = join(canaries.directory, `arena-${index}`);
    await using run = await ProfileRun.open(parts, directory, signal);
    const { uses, starts } = await run.examine(options.start, signal);
    checked.push(...uses);
    const made = starts.flatMap((start) => attacks.filter((attack) => isMade(attack, start)));
    options.onPlan?.(rows.length + made.length * (profiles.length - index));
    for (const attack of attacks) {
      const baseline = baselines.get(attack) ?? (await run.baseline(attack, signal));
      baselines.set(attack, baseline);
      for (const start of starts.filter((one) => isMade(attack, one))) {
        const row = await run.attempt(attack, start, baseline, signal);
        options.onRow?.(row);
        rows.push(row);
      }
    }
  }
  return { profiles: checked, rows };
}
