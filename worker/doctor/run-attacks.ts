/**
 * Runs attacks in this host's real sandbox, each with its control, and says what was held.
 */
import { basename, join } from "node:path";
import { openStore } from "../artifacts/open.ts";
import { sandboxMark } from "../sandbox/orphans.ts";
import type { Profile, Profiles } from "../sandbox/profile.ts";
import { SandboxError } from "../sandbox/sandbox.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { Attack, Observation, Target } from "./attack.ts";
import { type CallParts, RecordingStore, callAttack } from "./attack-call.ts";
import { attackLimits, attackable, loweredProfiles } from "./attack-profile.ts";
import type { AttackReport, AttackRow, AttackedProfile } from "./attack-report.ts";
import { layOutTools, neighbourTool, toolName, usefulTool } from "./attack-tools.ts";
import { endingOf, judge, ownAnswer, verdictOn } from "./attack-verdict.ts";
import type { AttackedOptions, AttackedWorker } from "./attacked-worker.ts";
import { type ControlRun, runControl } from "./control.ts";
import { type Neighbour, startNeighbour } from "./neighbour.ts";
import { type Plants, plant } from "./plants.ts";

/** What attacks are run with. */
export interface AttackOptions {
  readonly attacks: readonly Attack[];
  /** Names of profiles, at least one. */
  readonly profiles: readonly string[];
  /** All profiles that there are. */
  readonly known: Profiles;
  /** The project's `attacks/`. */
  readonly programsDir: string;
  /** Directories for what is planted, of which the first that can be used is: see {@link plant}. */
  readonly plantsDirs: readonly string[];
  readonly bwrapBin: string;
  /** Host uid of the sandboxes, or undefined for the worker's own. */
  readonly uid: number | undefined;
  readonly log: Logger;
  /** Opens the worker that is attacked; `runAttacks` disposes it. */
  open(options: AttackedOptions, signal: AbortSignal): Promise<AttackedWorker>;
  /** Told of each row as it comes. */
  onRow?(row: AttackRow): void;
}

/**
 * Runs every attack under every profile, one after the other. Throws what `open` throws, and SandboxError for a profile
 * that does not exist or has no sandbox, before anything is planted. Rejects with the signal's reason.
 */
export async function runAttacks(
  options: AttackOptions,
  signal: AbortSignal,
): Promise<AttackReport> {
  const { attacks, programsDir } = options;
  const known = loweredProfiles(options.known);
  const profiles = options.profiles.map((name) => attackable(known, name));
  const [first] = profiles;
  if (first === undefined) throw new Error("no profile is to be attacked");
  await using plants = await plant(options.plantsDirs, options.uid);
  const { directory, toolsDir, manifestPath } = await layOutTools(
    join(plants.directory, "stage"),
    programsDir,
    attacks,
    options.profiles,
    plants.token,
  );
  await using store = new RecordingStore(await openStore({ kind: "memory" }));
  const environment = { [plants.variable]: plants.token };
  await using worker = await options.open(
    { manifestPath, toolsDir, environment, store, profiles: known },
    signal,
  );
  const run = new Run(options, plants, worker, store, directory);

  const checked: AttackedProfile[] = [];
  for (const profile of profiles) checked.push(await run.checkUse(profile, signal));
  const rows: AttackRow[] = [];
  for (const attack of attacks) {
    const control = await run.control(attack, first, signal);
    for (const profile of profiles) {
      const row = await run.attempt(attack, profile, control, signal);
      options.onRow?.(row);
      rows.push(row);
    }
  }
  return { profiles: checked, rows };
}

/** One run: a worker with everything planted around it. */
class Run {
  readonly #options: AttackOptions;
  readonly #plants: Plants;
  readonly #worker: AttackedWorker;
  readonly #call: CallParts;
  readonly #stageDirectory: string;

  constructor(
    options: AttackOptions,
    plants: Plants,
    worker: AttackedWorker,
    store: RecordingStore,
    stageDirectory: string,
  ) {
    this.#options = options;
    this.#plants = plants;
    this.#worker = worker;
    this.#call = { invoker: worker.invoker, store, log: options.log };
    this.#stageDirectory = stageDirectory;
  }

  /** Whether a tool that does nothing wrong works: in a sandbox where nothing does, everything would be held. */
  async checkUse(profile: Profile, signal: AbortSignal): Promise<AttackedProfile> {
    const observation = await this.#observe(usefulTool, profile, 1, signal);
    const answer = ownAnswer(observation);
    return {
      name: profile.name,
      works: answer?.reached === false,
      evidence: answer?.evidence ?? endingOf(observation),
      unenforced: this.#unenforced(observation, profile),
    };
  }

  /** @param profile one with a tool of which the control has its interpreter */
  async control(attack: Attack, profile: Profile, signal: AbortSignal): Promise<ControlRun> {
    const { bwrapBin, uid } = this.#options;
    const { backend, catalog, runners } = this.#worker;
    const tool = catalog.resolve(toolName(profile.name, usefulTool));
    const runner = runners.get("python");
    if (tool === undefined || runner === undefined)
      throw new SandboxError("there is no Python that attacks can be run with");
    await using python = await runner.prepare(tool, profile);
    const { unenforced } = backend.facts(profile);
    const parts = {
      ...{ bwrapBin, uid, python, stageDirectory: this.#stageDirectory, limits: attackLimits },
      mark: sandboxMark(basename(backend.scratchDir)),
      hasProc: !unenforced.includes("fresh-proc"),
      hasHostName: !unenforced.includes("host-name"),
    };
    return await runControl(attack, this.#plants, parts, signal);
  }

  async attempt(
    attack: Attack,
    profile: Profile,
    control: ControlRun,
    signal: AbortSignal,
  ): Promise<AttackRow> {
    const { id, group, title, rounds = 1 } = attack;
    await using neighbour = attack.needsNeighbour
      ? await this.#neighbour(profile, signal)
      : undefined;
    const observation = await this.#observe(id, profile, rounds, signal);
    const { held, evidence } =
      neighbour?.problem === undefined
        ? judge(attack, observation)
        : { held: undefined, evidence: neighbour.problem };
    const unenforced = this.#unenforced(observation, profile);
    const { enforcement } = this.#worker.backend.facts(profile);
    const notPromised = attack.notPromised?.(profile, unenforced, enforcement);
    const { verdict, reason } = verdictOn(attack, notPromised, unenforced, held, control);
    const { durationMs } = observation;
    const what = { id, group, title, profile: profile.name };
    return { ...what, verdict, reason, evidence, durationMs, control };
  }

  #neighbour({ name }: Profile, signal: AbortSignal): Promise<Neighbour> {
    return startNeighbour(this.#call, toolName(name, neighbourTool), this.#plants.token, signal);
  }

  #unenforced({ outcome }: Observation, profile: Profile): readonly string[] {
    const execution = outcome.kind === "given-up" ? undefined : outcome.execution;
    return execution?.unenforced ?? this.#worker.backend.facts(profile).unenforced;
  }

  /** The last of as many calls as there are rounds. Rejects with the signal's reason: what was given up says nothing. */
  async #observe(
    id: string,
    { name, limits }: Profile,
    rounds: number,
    signal: AbortSignal,
  ): Promise<Observation> {
    const workBase = this.#worker.backend.scratchDir;
    const callRound = (round: number): Promise<Observation> => {
      const target: Target = { ...this.#plants.target, workBase, limits, round };
      return callAttack(this.#call, toolName(name, id), target, signal);
    };
    for (let round = 1; round < rounds; round++) await callRound(round);
    const observation = await callRound(rounds);
    signal.throwIfAborted();
    return observation;
  }
}
