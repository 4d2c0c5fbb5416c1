/**
 * Runs attacks under one profile, in a worker with the attacks as tools.
 */
import { basename } from "node:path";
import type { StartKind } from "../protocol/execution.ts";
import { ownerTag } from "../sandbox/orphans.ts";
import type { Profile, Profiles } from "../sandbox/profile.ts";
import { SandboxError } from "../sandbox/sandbox.ts";
import { systemClock } from "../support/clock.ts";
import type { Attack, Observation, Target } from "./attacks/attack.ts";
import { type CallParts, type RecordingStore, callAttack } from "./attacks/attack-call.ts";
import { attackLimits } from "./attacks/attack-profile.ts";
import type { AttackRow, AttackedProfile } from "./attacks/attack-report.ts";
import {
  type AttackStart,
  type StartChoice,
  startOfCall,
  startsToAttack,
} from "./attacks/attack-starts.ts";
import { type Arena, layOutTools, toolName, usefulTool } from "./attacks/attack-tools.ts";
import {
  type Judgement,
  endingOf,
  judge,
  ownAnswer,
  startSeen,
  verdictOn,
  wrongStart,
} from "./attacks/attack-verdict.ts";
import type { AttackedWorker } from "./attacks/attacked-worker.ts";
import { type BaselineRun, runBaseline } from "./attacks/baseline.ts";
import { startVictim } from "./attacks/victim.ts";
import type { Canaries } from "./attacks/canaries.ts";
import { ReadinessWait } from "./readiness.ts";
import type { AttackOptions } from "./attacks/attack-options.ts";

/** Calls until one has the intended start: idle sandboxes are disposed at each change. */
const maxTries = 3;

/** Dependencies of a run. */
export interface ProfileRunParts {
  readonly options: AttackOptions;
  readonly known: Profiles;
  readonly canaries: Canaries;
  readonly store: RecordingStore;
  /** With the limits of attacks. */
  readonly profile: Profile;
}

/** One run of an attack, and what it says of the sandbox. */
interface Attempt {
  readonly observation: Observation;
  readonly judgement: Judgement;
}

/** A worker between canaries, with one profile for all tools. Its owner disposes it. */
export class ProfileRun implements AsyncDisposable {
  readonly #parts: ProfileRunParts;
  readonly #arena: Arena;
  readonly #worker: AttackedWorker;
  readonly #call: CallParts;
  readonly #readiness: ReadinessWait;

  private constructor(parts: ProfileRunParts, arena: Arena, worker: AttackedWorker) {
    const { store, options } = parts;
    this.#parts = parts;
    this.#arena = arena;
    this.#worker = worker;
    this.#readiness = new ReadinessWait(worker, systemClock);
    const { invoker, takeAskedNames } = worker;
    this.#call = { invoker, takeAskedNames, store, log: options.log };
  }

  /** Rejects with the errors of opening a worker, or with the signal's reason. */
  static async open(
    parts: ProfileRunParts,
    directory: string,
    signal: AbortSignal,
  ): Promise<ProfileRun> {
    const { options, known, canaries, store, profile } = parts;
    const { programsDir, attacks, workDir, runtime = "python" } = options;
    const { limits } = profile;
    const importTarget = { ...canaries.target, workBase: workDir, limits, round: 1 };
    const layout = { runtime, programsDir, attacks, profile: profile.name, importTarget };
    const arena = await layOutTools(directory, layout);
    const { manifestPath, toolsDir } = arena;
    const environment = { [canaries.variable]: canaries.token };
    const attacked = { manifestPath, toolsDir, environment, store, profiles: known };
    return new ProfileRun(parts, arena, await options.open(attacked, signal));
  }

  /**
   * Calls the harmless tool by each start: a sandbox in which nothing works would block everything.
   * A start that this host never gives to a tool is not attacked.
   */
  async examine(
    choice: StartChoice,
    signal: AbortSignal,
  ): Promise<{
    readonly uses: readonly AttackedProfile[];
    readonly starts: readonly AttackStart[];
  }> {
    const auto = choice === "usual" ? await this.#autoStart(signal) : "cold";
    const starts = startsToAttack(choice, auto);
    const uses: AttackedProfile[] = [];
    const missing: StartKind[] = [];
    for (const start of new Set(starts.map(startOfCall))) {
      const { use, isThere } = await this.#use(start, signal);
      uses.push(use);
      if (!isThere) missing.push(start);
    }
    return { uses, starts: starts.filter((start) => !missing.includes(startOfCall(start))) };
  }

  async baseline(attack: Attack, signal: AbortSignal): Promise<BaselineRun> {
    const { options, canaries, profile } = this.#parts;
    const { bwrapBin, uid } = options;
    const { backend, catalog, runners } = this.#worker;
    // All tools have the same interpreter.
    const tool = catalog.resolve(toolName("cold", usefulTool));
    const runner = runners.get("python");
    if (tool === undefined || runner === undefined)
      throw new SandboxError("there is no Python that attacks can be run with");
    await using python = await runner.prepare(tool, profile);
    const { unenforced } = backend.facts(profile);
    const parts = {
      ...{ bwrapBin, uid, python, arenaDirectory: this.#arena.directory, limits: attackLimits },
      ownerTag: ownerTag(basename(backend.scratchDir)),
      hasProc: !unenforced.includes("fresh-proc"),
      hasHostName: !unenforced.includes("host-name"),
    };
    return await runBaseline(attack, canaries, parts, signal);
  }

  async attempt(
    attack: Attack,
    start: AttackStart,
    baseline: BaselineRun,
    signal: AbortSignal,
  ): Promise<AttackRow> {
    const { profile } = this.#parts;
    const { id, group, title } = attack;
    const what = { id, group, title, profile: profile.name, start };
    const unserved = group === "egress" && this.#worker.catalog.unavailable(toolName(start, id));
    if (unserved) {
      const reason = `no tool with a list of hosts is served here: ${unserved.reason}`;
      const nothing = { evidence: "", durationMs: 0, baseline };
      return { ...what, verdict: "not-promised", reason, ...nothing };
    }
    const attempt = () =>
      attack.needsVictim
        ? this.#attemptBesideVictim(attack, start, signal)
        : this.#attemptAlone(attack, start, signal);
    let { observation, judgement } = await attempt();
    // On a busy host one sample of the usage may be late, but not two.
    if (judgement.blocked === false && group === "limits")
      ({ observation, judgement } = await attempt());
    const unenforced = this.#unenforced(observation);
    const { enforcement } = this.#worker.backend.facts(profile);
    const notPromised =
      attack.notPromised?.(profile, unenforced, enforcement) ??
      (start === "import" ? attack.notPromisedAtImport : undefined);
    const { verdict, reason } = verdictOn(attack, notPromised, unenforced, judgement, baseline);
    const { evidence } = judgement;
    const { durationMs } = observation;
    return { ...what, verdict, reason, evidence, durationMs, baseline };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#worker[Symbol.asyncDispose]();
  }

  /** Start mode of a tool with `auto`. */
  async #autoStart(signal: AbortSignal): Promise<StartKind> {
    return (await this.#readiness.until(toolName("auto", usefulTool), signal)).startMode ?? "cold";
  }

  async #use(
    start: StartKind,
    signal: AbortSignal,
  ): Promise<{ readonly use: AttackedProfile; readonly isThere: boolean }> {
    const observation = await this.#observe(usefulTool, start, 1, signal);
    const ran = startSeen(observation) ?? start;
    const isThere = ran === start;
    const answer = ownAnswer(observation);
    const seen = answer?.evidence ?? endingOf(observation);
    const use = {
      name: this.#parts.profile.name,
      start,
      works: isThere && answer?.reached === false,
      evidence: isThere ? seen : wrongStart(start, ran, observation.notReady),
      unenforced: this.#unenforced(observation),
    };
    return { use, isThere };
  }

  async #attemptAlone(attack: Attack, start: AttackStart, signal: AbortSignal): Promise<Attempt> {
    const observation = await this.#observe(attack.id, start, attack.rounds ?? 1, signal);
    return { observation, judgement: judge(attack, observation, start) };
  }

  /**
   * The victim calls the same tool. Beside an import it is cold: calls share the import. A victim
   * with another start proves nothing, for the attack may not even have its sandbox in sight.
   */
  async #attemptBesideVictim(
    attack: Attack,
    start: AttackStart,
    signal: AbortSignal,
  ): Promise<Attempt> {
    const victimStart = start === "import" ? "cold" : start;
    const name = toolName(victimStart, attack.id);
    for (let left = maxTries - 1; ; left--) {
      const { problem: notReady } = await this.#readiness.until(name, signal);
      await using victim = await startVictim(this.#call, name, this.#parts.canaries.token, signal);
      const attempt = await this.#attemptAlone(attack, start, signal);
      // A breach counts, whatever ran beside it.
      if (attempt.judgement.blocked === false) return attempt;
      // Read before the end: a victim that has ended has a problem.
      const { problem } = victim;
      const ran = await victim.end();
      if (ran === victimStart && problem === undefined) return attempt;
      if (ran !== victimStart && left > 0) continue;
      const reason = problem ?? `of the victim: ${wrongStart(victimStart, ran, notReady)}`;
      return { ...attempt, judgement: { blocked: undefined, reason, evidence: "" } };
    }
  }

  #unenforced({ outcome }: Observation): readonly string[] {
    const execution = outcome.kind === "cancelled" ? undefined : outcome.execution;
    return execution?.unenforced ?? this.#worker.backend.facts(this.#parts.profile).unenforced;
  }

  /** Observes the last round. Rejects with the signal's reason: a cancelled call proves nothing. */
  async #observe(
    id: string,
    start: AttackStart,
    rounds: number,
    signal: AbortSignal,
  ): Promise<Observation> {
    for (let round = 1; round < rounds; round++) await this.#callRound(id, start, round, signal);
    const observation = await this.#callRound(id, start, rounds, signal);
    signal.throwIfAborted();
    return observation;
  }

  async #callRound(
    id: string,
    start: AttackStart,
    round: number,
    signal: AbortSignal,
  ): Promise<Observation> {
    const { canaries, profile } = this.#parts;
    const workBase = this.#worker.backend.scratchDir;
    const target: Target = { ...canaries.target, workBase, limits: profile.limits, round };
    const tool = toolName(start, id);
    for (let left = maxTries - 1; ; left--) {
      const ready = await this.#readiness.until(tool, signal);
      const called = { toolName: tool, code: this.#arena.programs.get(id) };
      const seen = await callAttack(this.#call, called, target, signal);
      const observation = { ...seen, notReady: ready.problem };
      const isRight = startSeen(observation) === startOfCall(start);
      if (isRight || !ready.isReady || left === 0) return observation;
    }
  }
}
