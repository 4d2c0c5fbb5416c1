/**
 * Options of `runAttacks`.
 */
import type { Profiles } from "../../sandbox/profile.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { Attack } from "./attack.ts";
import type { AttackRow } from "./attack-report.ts";
import type { StartChoice } from "./attack-starts.ts";
import type { AttackRuntime } from "./attack-tools.ts";
import type { AttackedOptions, AttackedWorker } from "./attacked-worker.ts";

/** The chosen attacks, and the host that runs them. */
export interface AttackOptions {
  readonly attacks: readonly Attack[];
  /** Names of the attacked profiles, at least one. */
  readonly profiles: readonly string[];
  /** All profiles of the worker. */
  readonly known: Profiles;
  readonly start: StartChoice;
  /** `python` unless given. */
  readonly runtime?: AttackRuntime;
  /** The project's `attacks/`. */
  readonly programsDir: string;
  /** Directories for canaries; `plantCanaries` takes the first that is usable. */
  readonly canaryDirs: readonly string[];
  readonly bwrapBin: string;
  /** Base of the workers' scratch directories. */
  readonly workDir: string;
  /** Host uid of the sandboxes, or undefined for the worker's own. */
  readonly uid: number | undefined;
  readonly log: Logger;
  /** Opens the worker that is attacked; `runAttacks` disposes it. */
  open(options: AttackedOptions, signal: AbortSignal): Promise<AttackedWorker>;
  /** Receives the number of rows to come, again at each change. */
  onPlan?(rows: number): void;
  /** Receives each row when it is ready. */
  onRow?(row: AttackRow): void;
}
