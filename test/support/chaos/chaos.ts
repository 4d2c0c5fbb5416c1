/**
 * Chaos: workers are ended, connections cut, manifests changed and the broker is restarted while an
 * agent calls, and everything is counted.
 */
import { rm } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, vi } from "vitest";
import { retryDelayMs } from "../../../harness/agent.ts";
import { defaultGroup, groupQueue } from "../../../worker/protocol/queue-names.ts";
import { type ChaosScene, chaosActs } from "./acts.ts";
import { type AgentDial, ChaosAgent } from "./agent.ts";
import { countEffects } from "./effects.ts";
import { ChaosHistory } from "./history.ts";
import { ChaosLines } from "./wire/line.ts";
import type { ChaosLane, ChaosOptions } from "./options.ts";
import { ChaosRandom, chaosSeed } from "./random.ts";
import type { ChaosReport } from "./report.ts";
import { isUnanswered } from "./requests.ts";
import { cancelledAfterMs, chaosQueues, requestName, secondsOf, toolOf } from "./tools.ts";
import { ChaosWorkers } from "./workers.ts";
import type { WireReader } from "./wire/wire.ts";
import { reachableDirectory } from "../workers/rig.ts";

/** A broker that can be treated badly. */
export interface ChaosBroker {
  /** On loopback. */
  readonly port: number;
  /** How the agent connects. */
  readonly dial: AgentDial;
  /** Reads a connection of a worker. */
  readonly read: () => WireReader;
  /** The variables by which a worker finds it through a port. */
  environment(port: number): Readonly<Record<string, string>>;
  /** Ends every connection. */
  cut(): Promise<void>;
  /** Stops it and starts it again, with everything that is durable. */
  restart(): Promise<void>;
  /** How many messages wait in these queues. */
  waiting(queues: readonly string[]): Promise<number>;
}

/**
 * Milliseconds after which a call is taken for lost: longer than a restart of the broker and
 * several of a worker, and than a queue takes on a machine that is busy with other tests.
 */
const lostAfterMs = 150_000;

/** Attempts of a call that is answered that its tool is not available, as agents make them. */
const maxAttempts = 2;

/**
 * Milliseconds, at most, from a call's answer to what happens next: calls are then everywhere on
 * their ways.
 */
const maxDelayMs = 500;

/** Milliseconds for what nobody waits for any more to come to its end. */
const endMs = 60_000;

/**
 * Calls tools, some of which must not run twice, and cancels some calls, while everything around
 * them breaks.
 */
export async function makeChaos(
  broker: ChaosBroker,
  namespace: string,
  options: ChaosOptions,
): Promise<ChaosReport> {
  const seed = chaosSeed();
  try {
    return await chaosOf(seed, broker, namespace, options);
  } catch (error) {
    throw new Error(`The chaos of CHAOS_SEED=${seed} came to no end`, { cause: error });
  }
}

async function chaosOf(
  seed: number,
  broker: ChaosBroker,
  namespace: string,
  options: ChaosOptions,
): Promise<ChaosReport> {
  await using owned = new AsyncDisposableStack();
  const directory = await reachableDirectory();
  owned.defer(() => rm(directory, { recursive: true, force: true }));
  const history = new ChaosHistory();
  const effects = owned.use(await countEffects(history));
  const agent = owned.use(new ChaosAgent(namespace, broker.dial, history));
  const lines = new ChaosLines({ ...broker, history });
  const environment = (port: number) => ({
    SAM_NAMESPACE: namespace,
    BROKER_MAX_DELIVERIES: String(options.maxDeliveries),
    ...broker.environment(port),
  });
  const count = options.workers;
  const workers = owned.use(
    await ChaosWorkers.start({ count, directory, environment, lines, history }),
  );
  const random = new ChaosRandom(seed);
  // One after the other: a broker that is starting has no connections to cut.
  let turn = Promise.resolve();
  const inTurn = (act: () => Promise<void>) => (): Promise<void> => (turn = turn.then(act));
  const scene = {
    workers,
    lines,
    history,
    cutAll: inTurn(() => broker.cut()),
    restart: inTurn(() => broker.restart()),
  };

  const over = new AbortController();
  owned.defer(() => over.abort());
  const { signal } = over;
  let lanesMissingActs = options.lanes.length;
  const onAllDone = (): void => void lanesMissingActs--;
  const acting = options.lanes.map((lane) =>
    act(lane, { ...scene, random: random.fork() }, onAllDone, signal),
  );
  let next = 0;
  let isLost = false;
  const calling = async (): Promise<void> => {
    while (!isLost && next < (lanesMissingActs > 0 ? options.maxCalls : options.calls)) {
      const request = await call(agent, effects.port, next++);
      isLost ||= isUnanswered(history.events, request, options);
      history.tell({ kind: "over", request });
    }
  };
  const allCalled = Promise.all(Array.from({ length: options.inFlight }, calling));
  await Promise.all([allCalled.then(() => over.abort()), ...acting]);

  const left = await leftBehind(broker, namespace);
  await workers.drain();
  return {
    seed,
    options,
    events: history.events,
    left,
    logsOf: (request) => workers.logsOf(request),
  };
}

/**
 * How many messages still wait for a worker after some time; what was sent twice may run after its
 * call is over.
 */
async function leftBehind(broker: ChaosBroker, namespace: string): Promise<number> {
  const queues = Object.keys(chaosQueues).map((queue) =>
    groupQueue(namespace, defaultGroup, queue),
  );
  let left = Infinity;
  const look = async (): Promise<void> => {
    left = await broker.waiting(queues);
    expect(left).toBe(0);
  };
  await vi.waitFor(look, { timeout: endMs, interval: 100 }).catch(() => undefined);
  return left;
}

/**
 * Does what is in a lane, until all is done or the signal aborts. Tells when it has done everything
 * once.
 */
async function act(
  lane: ChaosLane,
  scene: ChaosScene,
  onAllDone: () => void,
  signal: AbortSignal,
): Promise<void> {
  const { history, random } = scene;
  const missing = new Set(lane.acts);
  try {
    do {
      for (const name of lane.isOnce ? lane.acts : random.shuffled(lane.acts)) {
        await history.untilOver(random.about(lane.callsBetween), signal);
        await sleep(random.next() * maxDelayMs, undefined, { signal });
        const detail = await chaosActs[name](scene, signal);
        history.tell({ kind: "act", act: name, detail });
        if (missing.delete(name) && missing.size === 0) onAllDone();
      }
    } while (!lane.isOnce);
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

/**
 * Makes a call as agents do, until it is answered or taken for lost. Resolves with its last
 * request.
 */
async function call(agent: ChaosAgent, port: number, index: number): Promise<string> {
  for (let attempt = 1; ; attempt++) {
    const request = requestName(index, attempt);
    const tool = toolOf(request);
    const answered = agent.request(request, tool, { port, request, seconds: secondsOf(tool) });
    const cancelMs = cancelledAfterMs(request);
    if (cancelMs !== undefined) setTimeout(() => agent.cancel(request), cancelMs).unref();
    const ending = await Promise.race([answered, sleep(lostAfterMs, "lost", { ref: false })]);
    if (ending !== "TOOL_NOT_AVAILABLE" || attempt === maxAttempts) return request;
    await sleep(retryDelayMs);
  }
}
