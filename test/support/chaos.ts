/**
 * Chaos: workers are killed, connections cut and the broker is restarted while an agent calls, and everything is counted.
 */
import { rm } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import type { Answer } from "../../harness/messages.ts";
import type { ChaosAgent } from "./chaos-agent.ts";
import { type Runs, countEffects } from "./chaos-effects.ts";
import type { ChaosOptions } from "./chaos-options.ts";
import { ChaosProgress } from "./chaos-progress.ts";
import type { ChaosReport } from "./chaos-report.ts";
import { ChaosWorkers, chaosTools } from "./chaos-workers.ts";
import { reachableDirectory } from "./rig.ts";

/** A broker that can be treated badly. */
export interface ChaosBroker {
  /** The variables by which a worker finds it. */
  readonly environment: Readonly<Record<string, string>>;
  /** Ends every connection. */
  cut(): Promise<void> | void;
  /** Stops it and starts it again, with everything that is durable. */
  restart(): Promise<void>;
  /** Loses the next answer that a worker sends, and tells which worker; for brokers that can be made to. */
  loseAnswer?(signal: AbortSignal): Promise<string>;
}

/** Milliseconds after which a call is taken for lost: longer than a restart of the broker and several of a worker. */
const lostAfterMs = 90_000;

/** Milliseconds, at most, from a call's answer to what happens next: calls are then everywhere on their ways. */
const maxDelayMs = 500;

/** Milliseconds after which a worker has told the broker of what it settled when it sent an answer, if it did so then. */
const settlementMs = 100;

/** Makes calls of tools that may run twice and of tools that must not, in turns, while everything around them breaks. */
export async function makeChaos(
  broker: ChaosBroker,
  agent: ChaosAgent,
  namespace: string,
  options: ChaosOptions,
): Promise<ChaosReport> {
  await using owned = new AsyncDisposableStack();
  const directory = await reachableDirectory();
  owned.defer(() => rm(directory, { recursive: true, force: true }));
  const effects = owned.use(await countEffects());
  const environment = {
    SAM_NAMESPACE: namespace,
    BROKER_MAX_DELIVERIES: String(options.maxDeliveries),
    ...broker.environment,
  };
  const workers = owned.use(
    await ChaosWorkers.start({ count: options.workers, directory, environment }),
  );
  const over = new AbortController();
  owned.defer(() => over.abort());
  const { signal } = over;
  const progress = new ChaosProgress();
  let [kills, cuts] = [0, 0];

  const moments = killMoments(broker, workers, progress, effects.runs);
  const killing = repeat(progress, options.callsPerKill, signal, async () => {
    const victim = await moments[kills % moments.length]!(signal);
    if (!workers.ids.includes(victim)) return;
    kills++;
    await progress.during(1, () => workers.kill(victim));
  });

  // One after the other: a broker that is starting has no connections to cut.
  let turn = Promise.resolve();
  const inTurn = (act: () => Promise<void> | void): Promise<void> =>
    // Whoever lost one connection may have others' calls when it loses the next, so a call may come back once for each.
    (turn = turn.then(() => progress.during(options.workers, act)));
  const cutting = repeat(progress, options.callsPerCut, signal, async () => {
    await inTurn(() => broker.cut());
    cuts++;
  });
  const restarting = progress
    .until(Math.floor(options.calls / 2), signal)
    .then(() => inTurn(() => broker.restart()));

  const calls: ChaosReport["calls"][number][] = [];
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < options.calls) {
      const index = next++;
      const id = `call-${index}`;
      const tool = chaosTools[index % chaosTools.length]!;
      const before = progress.lossesOver;
      const answer = agent.call(id, tool, { port: effects.port, id });
      const lost = sleep(lostAfterMs, "none", { ref: false });
      const ending = await Promise.race([answer.then(endingOf), lost]);
      calls.push({ id, tool, ending, losses: progress.lossesBegun - before, ranIn: [] });
      progress.advance(id);
    }
  };
  const calling = Promise.all(Array.from({ length: options.inFlight }, lane));
  await Promise.all([calling.then(() => over.abort()), killing, cutting, restarting]);
  return {
    calls: calls.map((call) => ({ ...call, ranIn: effects.runs.get(call.id) ?? [] })),
    kills,
    cuts,
  };
}

/** When a worker is killed, in turns; each tells which. */
function killMoments(
  broker: ChaosBroker,
  workers: ChaosWorkers,
  progress: ChaosProgress,
  runs: Runs,
): readonly ((signal: AbortSignal) => Promise<string>)[] {
  const { loseAnswer } = broker;
  return [
    // It has sent an answer that the broker does not have.
    ...(loseAnswer
      ? [
          async (signal: AbortSignal) => {
            const victim = await loseAnswer(signal);
            await sleep(settlementMs, undefined, { signal });
            return victim;
          },
        ]
      : []),
    // The agent has just got its answer: the call is hardly settled yet.
    async (signal) => runs.get(await progress.next(signal))?.at(-1) ?? "",
    // Any.
    () => Promise.resolve(workers.ids[Math.floor(Math.random() * workers.ids.length)]!),
  ];
}

/** Acts again and again, with so many calls in between, give or take a half, until the signal. */
async function repeat(
  progress: ChaosProgress,
  callsBetween: number,
  signal: AbortSignal,
  act: () => Promise<void>,
): Promise<void> {
  try {
    for (;;) {
      const calls = Math.ceil((0.5 + Math.random()) * callsBetween);
      await progress.until(progress.calls + calls, signal);
      await sleep(Math.random() * maxDelayMs, undefined, { signal });
      await act();
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

function endingOf(answer: Answer): string {
  return answer.kind === "error" ? `${answer.code} (${answer.message})` : answer.kind;
}
