/**
 * Runs attacks in this host's real sandbox, each with its control, and says what was held.
 */
import { join } from "node:path";
import { openStore } from "../artifacts/open.ts";
import type { Attack } from "./attacks/attack.ts";
import { RecordingStore } from "./attacks/attack-call.ts";
import { attackable, loweredProfiles } from "./attacks/attack-profile.ts";
import type { AttackReport, AttackRow, AttackedProfile } from "./attacks/attack-report.ts";
import { isMade } from "./attacks/attack-starts.ts";
import type { ControlRun } from "./attacks/control.ts";
import { plant } from "./attacks/canaries.ts";
import { ProfileRun } from "./profile-run.ts";

import type { AttackOptions } from "./attacks/attack-options.ts";
/**
 * Runs every attack under every profile by every start that is asked for, one after the other, and
 * each control once. Throws what `open` throws, and SandboxError for a profile that does not exist
 * or has no sandbox, before anything is planted. Rejects with the signal's reason.
 */
export async function runAttacks(
  options: AttackOptions,
  signal: AbortSignal,
): Promise<AttackReport> {
  const { attacks } = options;
  const known = loweredProfiles(options.known);
  const profiles = options.profiles.map((name) => attackable(known, name));
  if (profiles.length === 0) throw new Error("no profile is to be attacked");
  await using plants = await plant(options.plantsDirs, options.uid);
  await using store = new RecordingStore(await openStore({ kind: "memory" }));

  const checked: AttackedProfile[] = [];
  const rows: AttackRow[] = [];
  const controls = new Map<Attack, ControlRun>();
  for (const [index, profile] of profiles.entries()) {
    const parts = { options, known, plants, store, profile };
    const directory = join(plants.directory, `stage-${index}`);
    await using run = await ProfileRun.open(parts, directory, signal);
    const { uses, starts } = await run.examine(options.start, signal);
    checked.push(...uses);
    const made = starts.flatMap((start) => attacks.filter((attack) => isMade(attack, start)));
    options.onPlan?.(rows.length + made.length * (profiles.length - index));
    for (const attack of attacks) {
      const control = controls.get(attack) ?? (await run.control(attack, signal));
      controls.set(attack, control);
      for (const start of starts.filter((one) => isMade(attack, one))) {
        const row = await run.attempt(attack, start, control, signal);
        options.onRow?.(row);
        rows.push(row);
      }
    }
  }
  return { profiles: checked, rows };
}
