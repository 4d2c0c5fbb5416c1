/**
 * `str-worker doctor`: what this host allows sandboxes, and with `--attack` whether they hold.
 */
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { type Host, examineSandboxes } from "./app.ts";
import { attackHost } from "./attack.ts";
import type { Config } from "./config.ts";
import { allHeld, attackJson, attackTable } from "./doctor/attack-report.ts";
import { attacks } from "./doctor/catalog.ts";
import { AttackProgress, type Screen } from "./doctor/progress.ts";
import { isolates } from "./sandbox/profile.ts";
import { loadProfiles } from "./sandbox/profiles-file.ts";
import { diagnosisJson, diagnosisTable, isFit } from "./doctor/report.ts";

/** Where sandboxes are tried when the operator has named no work directory: every user can pass it. */
const scratchBase = "/tmp";

/** What is asked for on the command line. */
export interface DoctorChoice {
  /** For machines, not for people. */
  readonly isJson: boolean;
  readonly isAttack: boolean;
  /** The one profile that is attacked, or undefined for all of them. */
  readonly profile: string | undefined;
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
 * Examines or attacks this host. Nothing of the worker has to be there: neither broker, manifest nor tools.
 * Throws SandboxError where nobody can say, such as without bubblewrap.
 */
export async function consultDoctor(
  config: Config,
  host: Host,
  choice: DoctorChoice,
  signal: AbortSignal,
): Promise<DoctorReport> {
  await using scratch = await openScratch(host);
  const { sandbox } = config;
  const placed = { ...config, sandbox: { ...sandbox, workDir: scratch.path ?? sandbox.workDir } };
  // Awaited here: until then the directory is needed.
  return await (choice.isAttack
    ? attack(placed, host, choice, signal)
    : examine(placed, host, choice));
}

async function examine(
  config: Config,
  host: Host,
  { isJson }: DoctorChoice,
): Promise<DoctorReport> {
  const { minimum } = config.sandbox;
  const diagnosis = { ...(await examineSandboxes(config, host)), minimum };
  const text = isJson ? diagnosisJson(diagnosis) : diagnosisTable(diagnosis);
  return { text, isGood: isFit(diagnosis) };
}

async function attack(
  config: Config,
  host: Host,
  { isJson, profile, screen }: DoctorChoice,
  signal: AbortSignal,
): Promise<DoctorReport> {
  const profiles = profile === undefined ? await profilesOf(config) : [profile];
  using progress = new AttackProgress(screen, attacks.length * profiles.length);
  const onRow = progress.add.bind(progress);
  const report = await attackHost(config, host, { attacks, profiles, onRow }, signal);
  return { text: isJson ? attackJson(report) : attackTable(report), isGood: allHeld(report) };
}

/** All that have a sandbox. */
async function profilesOf({ sandbox }: Config): Promise<readonly string[]> {
  const profiles = [...(await loadProfiles(sandbox.profilesFile)).values()];
  return profiles.filter(isolates).map(({ name }) => name);
}

/** A work directory for as long as this takes; none where the operator has named one. */
async function openScratch({ environment }: Host): Promise<Scratch> {
  if ((environment["SANDBOX_WORK_DIR"] ?? "") !== "")
    return { path: undefined, [Symbol.asyncDispose]: () => Promise.resolve() };
  const path = await mkdtemp(join(scratchBase, "str-doctor-"));
  await chmod(path, 0o711);
  return {
    path,
    [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }),
  };
}

interface Scratch extends AsyncDisposable {
  readonly path: string | undefined;
}
