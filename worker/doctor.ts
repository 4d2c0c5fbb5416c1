/**
 * `str-worker doctor`: what this host allows sandboxes, and with `--attack` whether they hold.
 */
import { type Host, examineSandboxes, readProfiles } from "./app.ts";
import { attackHost } from "./attack-host.ts";
import type { Config } from "./config/config.ts";
import { allHeld, attackJson, attackTable } from "./doctor/attacks/attack-report.ts";
import { attackableNames } from "./doctor/attacks/attack-profile.ts";
import { attacks } from "./doctor/attacks/catalog.ts";
import type { DoctorOptions } from "./doctor/command-line.ts";
import { AttackProgress, type Screen } from "./doctor/progress.ts";
import { diagnosisJson, diagnosisTable, isFit } from "./doctor/report.ts";
import type { Profiles } from "./sandbox/profile.ts";
import { ScratchDir, scratchBases } from "./sandbox/work/scratch-dirs.ts";

/** What the doctor is asked. */
export interface DoctorChoice extends DoctorOptions {
  /** Where people see how far attacks are. */
  readonly screen: Screen;
}

/** What the doctor says. */
export interface DoctorReport {
  readonly text: string;
  /** Whether everything holds that should. */
  readonly isGood: boolean;
}

/**
 * Examines or attacks this host. Nothing of the worker has to be there: neither broker, manifest
 * nor tools. Throws SandboxError where nobody can say, such as without bubblewrap, and what {@link
 * readProfiles} throws. Rejects with the signal's reason.
 */
export async function consultDoctor(
  config: Config,
  host: Host,
  choice: DoctorChoice,
  signal: AbortSignal,
): Promise<DoctorReport> {
  const profiles = await readProfiles(config);
  await using scratch = await openScratch(host);
  const { sandbox } = config;
  const placed = { ...config, sandbox: { ...sandbox, workDir: scratch?.path ?? sandbox.workDir } };
  // Awaited here: until then the directory is needed.
  return await (choice.isAttack
    ? attack(placed, host, profiles, choice, signal)
    : examine(placed, host, choice, signal));
}

async function examine(
  config: Config,
  host: Host,
  { isJson }: DoctorChoice,
  signal: AbortSignal,
): Promise<DoctorReport> {
  const { minimum } = config.sandbox;
  const diagnosis = { ...(await examineSandboxes(config, host, signal)), minimum };
  const text = isJson ? diagnosisJson(diagnosis) : diagnosisTable(diagnosis);
  return { text, isGood: isFit(diagnosis) };
}

async function attack(
  config: Config,
  host: Host,
  known: Profiles,
  { isJson, profile, start, screen }: DoctorChoice,
  signal: AbortSignal,
): Promise<DoctorReport> {
  const profiles = profile === undefined ? attackableNames(known) : [profile];
  using progress = new AttackProgress(screen, attacks.length * profiles.length);
  const [onPlan, onRow] = [progress.plan.bind(progress), progress.add.bind(progress)];
  const choices = { attacks, profiles, known, start, onPlan, onRow };
  const report = await attackHost(config, host, choices, signal);
  return { text: isJson ? attackJson(report) : attackTable(report), isGood: allHeld(report) };
}

/** A work directory for as long as this takes; none where the operator has named one. */
async function openScratch({ environment }: Host): Promise<ScratchDir | undefined> {
  if ((environment["SANDBOX_WORK_DIR"] ?? "") !== "") return undefined;
  return ScratchDir.make("work", scratchBases.work, 0o711);
}
