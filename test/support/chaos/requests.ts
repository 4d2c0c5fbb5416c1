/**
 * What was promised of each request, and is to be seen in what happened to it.
 */
import { type ChaosEvent, eventsOf } from "./history.ts";
import type { ChaosOptions } from "./options.ts";
import { callOf, isRepeatable, toolOf } from "./tools.ts";

/** `BROKER_MAX_RUNS`, unless told otherwise. */
const maxRuns = 4;

/** All that happened to a request, in order. */
export interface ChaosRequest {
  readonly name: string;
  readonly events: readonly ChaosEvent[];
}

/** What happened to the workers that had a request. */
interface Circumstances {
  readonly wasStopped: (worker: string) => boolean;
  /** Stopped in whatever way. */
  readonly wasEnded: (worker: string) => boolean;
  /** Whether the tool was taken out of a worker's manifest at some time. */
  readonly wasWithdrawn: (worker: string) => boolean;
  readonly maxDeliveries: number;
}

/** Every request, in the order in which they were sent first. */
export function requestsOf(events: readonly ChaosEvent[]): readonly ChaosRequest[] {
  const requests = new Map<string, ChaosEvent[]>();
  for (const event of events) {
    if (!("request" in event)) continue;
    const known = requests.get(event.request);
    if (known === undefined) requests.set(event.request, [event]);
    else known.push(event);
  }
  return Array.from(requests, ([name, own]) => ({ name, events: own }));
}

/** What was promised of a request and not kept, a line for each. */
export function brokenByRequest(
  request: ChaosRequest,
  all: readonly ChaosEvent[],
  { maxDeliveries }: ChaosOptions,
): readonly string[] {
  const tool = toolOf(request.name);
  // At the end all of them are drained.
  const last = all.findLastIndex(
    (event) => event.kind === "heard" && event.request === request.name,
  );
  const stopped = eventsOf("stopped", all.slice(0, last + 1));
  const circumstances = {
    maxDeliveries,
    wasStopped: (worker: string) =>
      stopped.some((event) => event.worker === worker && event.how !== "SIGKILL"),
    wasEnded: (worker: string) => stopped.some((event) => event.worker === worker),
    wasWithdrawn: (worker: string) =>
      eventsOf("withdrawn", all).some((event) => event.worker === worker && event.tool === tool),
  };
  return [...problemsOf(request, circumstances)].map((problem) => `${request.name} ${problem}`);
}

/** Calls that ran twice, by whichever of their requests, and must not. */
export function brokenByCall(requests: readonly ChaosRequest[]): readonly string[] {
  const once = requests.filter(({ name }) => !isRepeatable(toolOf(name)));
  const calls = Map.groupBy(once, ({ name }) => callOf(name));
  return [...calls.values()].flatMap((attempts) => {
    const promised = attempts.filter((attempt) => !isRefusedUnsettled(attempt));
    const runs = promised.flatMap(({ events }) => eventsOf("began", events));
    const last = attempts.at(-1)!.name;
    return runs.length > 1 ? [`${last} is of a call that ran ${runs.length} times`] : [];
  });
}

/**
 * Whether a request was refused, and delivered again since its worker did not live to settle it:
 * its agent tries again with another request, and the tool may have come back. The worker may have
 * settled it before, when it requeued it.
 */
function isRefusedUnsettled({ events }: ChaosRequest): boolean {
  const unsettled = events.some(
    (answer, index) =>
      answer.kind === "answered" &&
      !eventsOf("settled", events.slice(index)).some(
        ({ worker, isLost }) => worker === answer.worker && !isLost,
      ),
  );
  return unsettled && eventsOf("heard", events)[0]?.ending === "TOOL_NOT_AVAILABLE";
}

function* problemsOf({ name, events }: ChaosRequest, around: Circumstances): Generator<string> {
  const delivered = eventsOf("delivered", events);
  const began = eventsOf("began", events);
  const heard = eventsOf("heard", events);
  const copies = copiesOf(events);

  if (isUnanswered(events, name, around)) yield "was not answered";
  else if (isUnanswered(before("over", events), name, around)) yield "was answered too late";
  for (const answer of heard)
    if (!isExplained(answer, events, around)) yield `was answered ${answer.ending} for no reason`;

  if (isToldWrong(heard)) yield "was answered NOT_REPEATED, and succeeded then";
  const first = delivered.filter(({ count, isRepeated }) => count === 1 && !isRepeated);
  if (first.length > copies) yield `was sent ${copies} times and is new to ${first.length} workers`;
  const ranIn = new Set(began.map(({ worker }) => worker));
  if (ranIn.size < began.length) yield "ran again in a worker that knew it";
  const cameTo = new Set(delivered.map(({ worker }) => worker));
  if (!ranIn.isSubsetOf(cameTo)) yield "ran where it had not been handed out";
  if (isSettledUnanswered(events)) yield "was settled before the broker had its answer";
}

/**
 * Whether a request has no answer, though the broker has not handed it out for the last time and
 * put it aside then.
 */
export function isUnanswered(
  events: readonly ChaosEvent[],
  request: string,
  { maxDeliveries }: Pick<ChaosOptions, "maxDeliveries">,
): boolean {
  const isIts = (event: { readonly request: string }): boolean => event.request === request;
  const wasLast = eventsOf("delivered", events).some(
    (event) => isIts(event) && event.count >= maxDeliveries,
  );
  return !wasLast && !eventsOf("heard", events).some(isIts);
}

/** What happened before the first event of a kind. */
function before(kind: ChaosEvent["kind"], events: readonly ChaosEvent[]): readonly ChaosEvent[] {
  const first = events.findIndex((event) => event.kind === kind);
  return first < 0 ? events : events.slice(0, first);
}

/** How often the broker may have been given it. */
function copiesOf(events: readonly ChaosEvent[]): number {
  return eventsOf("sent", events).length - eventsOf("unheard", events).length;
}

/** Whether an answer may be what it is. */
function isExplained(
  { ending, run, request }: Extract<ChaosEvent, { readonly kind: "heard" }>,
  events: readonly ChaosEvent[],
  { wasStopped, wasEnded, wasWithdrawn, maxDeliveries }: Circumstances,
): boolean {
  const isOnce = !isRepeatable(toolOf(request));
  const delivered = eventsOf("delivered", events);
  const began = eventsOf("began", events);
  switch (ending) {
    case "success":
      return began.some((event) => event.run === run);
    // Also by a worker that has lost the tool, and with it the knowledge that it may run twice.
    case "NOT_REPEATED":
      return (
        (isOnce || delivered.some(({ worker }) => wasWithdrawn(worker))) &&
        delivered.some(({ worker }) => wasEnded(worker))
      );
    // By the count that was seen on its way to a worker, one delivery before the last; or by the
    // workers that ended.
    case "POISONED":
      return (
        delivered.some(({ count }) => count >= maxDeliveries - 1) ||
        delivered.filter(({ worker }) => wasEnded(worker)).length >= maxRuns
      );
    case "CANCELLED":
      return eventsOf("cancelled", events).length > 0;
    case "TOOL_NOT_AVAILABLE":
      return delivered.some(({ worker }) => wasStopped(worker) || wasWithdrawn(worker));
    case "SANDBOX_FAILED":
      // The tool may have been ended before its first word.
      return isOnce && delivered.some(({ worker }) => wasStopped(worker));
    default:
      return false;
  }
}

/**
 * Whether a worker has told the broker that it is done with it, with no answer on its way to the
 * broker.
 */
function isSettledUnanswered(events: readonly ChaosEvent[]): boolean {
  let isAnswered = false;
  return events.some((event) => {
    if (event.kind === "answered" && !event.isLost) isAnswered = true;
    return event.kind === "settled" && event.outcome !== "failed" && !isAnswered;
  });
}

/** Whether the agent heard first that a call was not run, and then what the run returned. */
function isToldWrong(heard: readonly { readonly ending: string }[]): boolean {
  return heard[0]?.ending === "NOT_REPEATED" && heard.some(({ ending }) => ending === "success");
}
