/**
 * What is done to workers, connections, broker and manifests in a chaos.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { ChaosEvent, ChaosHistory, WireEvent } from "./history.ts";
import type { ChaosLines } from "./wire/line.ts";
import type { ChaosRandom } from "./random.ts";
import { type ChaosTool, chaosTools, toolOf } from "./tools.ts";
import type { ChaosWorkers, WorkerEnd } from "./workers.ts";

/** What acts have in hand. */
export interface ChaosScene {
  readonly workers: ChaosWorkers;
  readonly lines: ChaosLines;
  readonly history: ChaosHistory;
  /** Ends every connection, by the broker. */
  readonly cutAll: () => Promise<void>;
  /** Stops the broker and starts it again. */
  readonly restart: () => Promise<void>;
  readonly random: ChaosRandom;
}

/**
 * Does something, and tells what it was about. Rejects with the signal's reason when it aborts
 * before the moment for it has come; what was begun is brought to its end.
 */
type Act = (scene: ChaosScene, signal: AbortSignal) => Promise<string>;

export type ChaosActName =
  | "kill any"
  | "kill while it runs"
  | "kill while it answers"
  | "kill without its answer"
  | "drain"
  | "stop at once"
  | "cut one"
  | "cut while it answers"
  | "cut all"
  | "cut without its settlement"
  | "restart"
  | "withdraw";

/**
 * Milliseconds after which even a busy worker has told the broker of what it settled when it sent
 * an answer, if it did so then.
 */
const settlementMs = 500;

/** Milliseconds, at most, that a tool has run when its worker is ended. */
const runMs = 400;

/** Calls that are over while a tool is withdrawn, give or take a half. */
const withdrawnCalls = 10;

/** The tool of which a settlement gets lost; it may run again. */
const keptTool: ChaosTool = "short";

/** What can be done. */
export const chaosActs: Readonly<Record<ChaosActName, Act>> = {
  "kill any": async (scene) => {
    const victim = scene.random.pick(scene.workers.ids);
    await scene.workers.end(victim, "SIGKILL");
    return victim;
  },
  "kill while it runs": endWhileItRuns("SIGKILL"),
  // The broker has the answer, or is just getting it, and the call is hardly settled yet.
  "kill while it answers": async ({ workers, history }, signal) => {
    const { worker, request } = await history.until(answer, signal);
    await workers.end(worker, "SIGKILL");
    return `${worker}, ${request}`;
  },
  "kill without its answer": killWithoutAnswer,
  drain: endWhileItRuns("SIGTERM"),
  // So long that the drain is not over when it is told once more.
  "stop at once": endWhileItRuns("SIGTERM twice", "long"),
  "cut one": async ({ workers, random }) => {
    const victim = random.pick(workers.ids);
    workers.cut(victim);
    return victim;
  },
  // The worker does not learn that the broker has the answer.
  "cut while it answers": async ({ workers, history }, signal) => {
    const { worker, request } = await history.until(answer, signal);
    workers.cut(worker);
    return `${worker}, ${request}`;
  },
  "cut all": async ({ cutAll }) => {
    await cutAll();
    return "";
  },
  "cut without its settlement": cutWithoutSettlement,
  restart: async ({ restart }) => {
    await restart();
    return "";
  },
  withdraw: async (scene, signal) => {
    const { workers, history, random } = scene;
    const tool = random.pick(chaosTools);
    const ids = random.shuffled(workers.ids);
    const losers = ids.slice(0, 1 + Math.floor(random.next() * (ids.length - 1)));
    try {
      await Promise.all(losers.map((id) => workers.withdraw(tool, id, signal)));
      await history.untilOver(random.about(withdrawnCalls), signal);
    } finally {
      await workers.putBack(tool);
    }
    return `${tool} from ${losers.join(" ")}`;
  },
};

/** Ends a worker in which a tool has begun a moment ago: any, or the one that is named. */
function endWhileItRuns(how: WorkerEnd, tool?: ChaosTool): Act {
  return async ({ workers, history, random }, signal) => {
    const { worker, request } = await history.until((event) => {
      if (event.kind !== "began") return undefined;
      return tool === undefined || toolOf(event.request) === tool ? event : undefined;
    }, signal);
    await sleep(random.next() * runMs);
    await workers.end(worker, how);
    return `${worker}, ${request}`;
  };
}

/** What a worker settles before the broker has confirmed its answer is lost for good by this. */
async function killWithoutAnswer(
  { workers, lines, history }: ChaosScene,
  signal: AbortSignal,
): Promise<string> {
  let victim: string | undefined;
  using _fault = lines.during((event, worker) => {
    // One that is sent again since the connection was lost is an answer to what the broker has
    // handed out anew.
    if (event.kind === "answered" && !history.wasAnswered(event.request)) victim ??= worker;
    // What is published after what is lost is lost as well: a connection has no holes, and brokers
    // confirm by counting.
    return worker === victim && (event.kind === "answered" || event.kind === "announced");
  });
  const { worker, request } = await history.until(
    (event) => (event.kind === "answered" && event.isLost ? event : undefined),
    signal,
  );
  await sleep(settlementMs);
  await workers.end(worker, "SIGKILL");
  return `${worker}, ${request}`;
}

/**
 * Cuts the connections of a worker after the broker has its answer, and before the broker learns
 * that the call is settled. The others are held off, so that the call comes back to the same
 * worker: one that forgot its answer runs the call again.
 */
async function cutWithoutSettlement(scene: ChaosScene, signal: AbortSignal): Promise<string> {
  const { workers, lines, history } = scene;
  const isMeant = (event: WireEvent): boolean =>
    event.kind === "settled" && event.outcome === "accepted" && toolOf(event.request) === keptTool;
  for (;;) {
    using stack = new DisposableStack();
    const heldOff = new Set<string>();
    let keeper: string | undefined;
    const fault = lines.during((event, worker) => {
      if (keeper !== undefined || !isMeant(event)) return false;
      keeper = worker;
      for (const id of workers.ids) if (id !== worker) heldOff.add(id);
      for (const id of heldOff) stack.use(workers.holdOff(id));
      workers.cut(worker);
      return true;
    });
    stack.use(fault);
    const { request } = await history.until(
      (event) => (event.kind === "settled" && event.isLost && isMeant(event) ? event : undefined),
      signal,
    );
    // The broker may hand it out on a connection of which it has not noticed that it is cut. A
    // keeper that ends leaves it to the others.
    const next = await history.until((event) => {
      if (event.kind === "ended" && event.worker === keeper) return "nobody";
      if (event.kind !== "delivered" || event.request !== request) return undefined;
      return heldOff.has(event.worker) ? undefined : event.worker;
    }, signal);
    // Another worker may have been started meanwhile.
    if (next === keeper) return `${next}, ${request}`;
  }
}

function answer(event: ChaosEvent) {
  return event.kind === "answered" ? event : undefined;
}
