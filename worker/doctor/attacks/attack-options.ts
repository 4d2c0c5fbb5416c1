/**
 * What attacks are run with.
 */
import type { Profiles } from "../../sandbox/profile.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { Attack } from "./attack.ts";
import type { AttackRow } from "./attack-report.ts";
import type { StartChoice } from "./attack-starts.ts";
import type { AttackedOptions, AttackedWorker } from "./attacked-worker.ts";

/** The choice of attacks and what they need. */
export interface AttackOptions {
  readonly attacks: readonly Attack[];
  /** Names of profiles, at least one. */
  readonly profiles: readonly string[];
  /** All profiles that there are. */
  readonly known: Profiles;
  readonly start: StartChoice;
  /** The project's `attacks/`. */
  readonly programsDir: string;
  /** Directories for what is planted, of which the first that can be used is: see `plantCanaries`. */
  readonly canaryDirs: readonly string[];
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
