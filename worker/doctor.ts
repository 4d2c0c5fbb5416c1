/**
 * `str-worker doctor`: examines the sandboxes of this host, or attacks them with `--attack`.
 */
import { attackHost } from "./attack-host.ts";
import type { Config } from "./config/config.ts";
import { allHeld, attackJson, attackTable } from "./doctor/attacks/attack-report.ts";
import { attackableNames } from "./doctor/attacks/attack-profile.ts";
import { attacks } from "./doctor/attacks/catalog.ts";
import type { DoctorOptions } from "./doctor/command-line.ts";
import { AttackProgress, type Screen } from "./doctor/progress.ts";
import { diagnosisJson, diagnosisTable, isFit } from "./doctor/report.ts";
import { type Profiles, withHostNetwork } from "./sandbox/profile.ts";
import { ScratchDir, scratchBases } from "./sandbox/work/scratch-dirs.ts";
import type { Host } from "./wiring/host.ts";
import { examineSandboxes, readProfiles } from "./wiring/sandboxes.ts";

/** Options of the doctor, with the screen. */
export interface DoctorChoice extends DoctorOptions {
  /** Shows the progress of attacks. */
  readonly screen: Screen;
}

/** The doctor's report. */
export interface DoctorReport {
  readonly text: string;
  /** Whether the exit code is 0. */
  readonly isGood: boolean;
}

/**
 * Examines or attacks this host, without broker, manifest and tools. Rejects with SandboxError when
 * that is impossible, such as without bubblewrap, with the errors of {@link readProfiles}, and with
 * the signal's reason.
 */
export async function consultDoctor(
  config: Config,
  host: Host,
  choice: DoctorChoice,
  signal: AbortSignal,
): Promise<DoctorReport> {
  const { sandbox } = config;
  const written = await readProfiles(config);
  const profiles = new Map(
    Array.from(written, ([name, one]) => [name, withHostNetwork(one, sandbox.hostNetwork)]),
  );
  await using scratch = await openScratch(host);
  const placed = { ...config, sandbox: { ...sandbox, workDir: scratch?.path ?? sandbox.workDir } };
  // Awaited before the scratch directory is disposed.
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

/** A temporary work directory; undefined when the operator has configured one. */
async function openScratch({ environment }: Host): Promise<ScratchDir | undefined> {
  if ((environment["SANDBOX_WORK_DIR"] ?? "") !== "") return undefined;
  return ScratchDir.make("work", scratchBases.work, 0o711);
}
