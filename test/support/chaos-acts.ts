/**
 * What is done to workers, connections, broker and manifests in a chaos.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { ChaosEvent, ChaosHistory, WireEvent } from "./chaos-history.ts";
import type { ChaosLines } from "./chaos-line.ts";
import type { ChaosRandom } from "./chaos-random.ts";
import { type ChaosTool, chaosTools, toolOf } from "./chaos-tools.ts";
import type { ChaosWorkers, WorkerEnd } from "./chaos-workers.ts";

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
 * Does something, and tells what it was about. Rejects with the signal's reason when it aborts before the moment for it has
 * come; what was begun is brought to its end.
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

/** Milliseconds after which even a busy worker has told the broker of what it settled when it sent an answer, if it did so then. */
const settlementMs = 500;

/** Milliseconds, at most, that a tool has run when its worker is ended. */
const runMs = 400;

/** Calls that are over while a tool is withdrawn, give or take a half. */
const withdrawnCalls = 10;

/** The tool of which one worker alone is left: its calls come back to no other. */
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
  using _fault = lines.during(({ kind, request }, worker) => {
    if (kind !== "answered") return false;
    // One that is sent again since the connection was lost is an answer to what the broker has handed out anew.
    if (!history.wasAnswered(request)) victim ??= worker;
    // What is sent after what is lost is lost as well: a connection has no holes.
    return worker === victim;
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
 * Cuts the connections of a worker after it was told that the broker has its answer, and before the broker is told that the
 * call is settled. The call comes back to the same worker, since no other has the tool: whoever does not remember that it has
 * answered runs it again.
 */
async function cutWithoutSettlement(scene: ChaosScene, signal: AbortSignal): Promise<string> {
  const { workers, history } = scene;
  try {
    for (;;) {
      const keeper = await history.until(
        (event) => (event.kind === "began" ? event.worker : undefined),
        signal,
      );
      const others = workers.ids.filter((id) => id !== keeper);
      await Promise.all(others.map((id) => workers.withdraw(keptTool, id, signal)));
      const request = await loseSettlement(scene, keeper, signal);
      if (request !== undefined && (await nextToGet(request, history, signal)) === keeper)
        return `${keeper}, ${request}`;
      // A worker that was started meanwhile has the tool, or the broker had not been told yet that another leaves it.
      await workers.putBack(keptTool);
    }
  } finally {
    await workers.putBack(keptTool);
  }
}

/** Resolves with the request that was not settled, or none when the worker has ended. */
async function loseSettlement(
  { workers, lines, history }: ChaosScene,
  keeper: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  const isMeant = (event: WireEvent): boolean =>
    event.kind === "settled" && event.outcome === "accepted" && toolOf(event.request) === keptTool;
  using _fault = lines.during((event, worker) => {
    if (worker !== keeper || !isMeant(event)) return false;
    workers.cut(keeper);
    return true;
  });
  if (!workers.ids.includes(keeper)) return undefined;
  const { request } = await history.until((event) => {
    if (event.kind === "settled" && event.isLost && isMeant(event)) return event;
    return event.kind === "stopped" && event.worker === keeper ? { request: undefined } : undefined;
  }, signal);
  return request;
}

/** The worker that a request is handed out to next. */
function nextToGet(request: string, history: ChaosHistory, signal: AbortSignal): Promise<string> {
  return history.until(
    (event) => (event.kind === "delivered" && event.request === request ? event.worker : undefined),
    signal,
  );
}

function answer(event: ChaosEvent) {
  return event.kind === "answered" ? event : undefined;
}
