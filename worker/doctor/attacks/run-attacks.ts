/**
 * Runs attacks in this host's real sandbox, each with its control, and says what was held.
 */
import { join } from "node:path";
import { openStore } from "../../artifacts/open.ts";
import type { Profiles } from "../../sandbox/profile.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { Attack } from "./attack.ts";
import { RecordingStore } from "./attack-call.ts";
import { attackable, loweredProfiles } from "./attack-profile.ts";
import type { AttackReport, AttackRow, AttackedProfile } from "./attack-report.ts";
import { type StartChoice, isMade } from "./attack-starts.ts";
import type { AttackedOptions, AttackedWorker } from "./attacked-worker.ts";
import type { ControlRun } from "./control.ts";
import { plant } from "./plants.ts";
import { ProfileRun } from "../profile-run.ts";

/** What attacks are run with. */
export interface AttackOptions {
  readonly attacks: readonly Attack[];
  /** Names of profiles, at least one. */
  readonly profiles: readonly string[];
  /** All profiles that there are. */
  readonly known: Profiles;
  readonly start: StartChoice;
  /** The project's `attacks/`. */
  readonly programsDir: string;
  /** Directories for what is planted, of which the first that can be used is: see {@link plant}. */
  readonly plantsDirs: readonly string[];
  readonly bwrapBin: string;
  /** Where workers have the directories of their sandboxes. */
  readonly workDir: string;
  /** Host uid of the sandboxes, or undefined for the worker's own. */
  readonly uid: number | undefined;
  readonly log: Logger;
  /** Opens the worker that is attacked; `runAttacks` disposes it. */
  open(options: AttackedOptions, signal: AbortSignal): Promise<AttackedWorker>;
  /** Told how many rows there will be, as soon as that is known and whenever it changes. */
  onPlan?(rows: number): void;
  /** Told of each row as it comes. */
  onRow?(row: AttackRow): void;
}

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
