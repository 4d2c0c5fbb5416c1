/**
 * What became of a chaos, and which promises were broken in it.
 */
import { expect } from "vitest";
import type { ChaosEvent, TimedEvent } from "./history.ts";
import type { ChaosOptions } from "./options.ts";
import { brokenByRequest, brokenByCall, requestsOf } from "./requests.ts";
import { chaosTools, toolOf } from "./tools.ts";

export interface ChaosReport {
  /** What the order and the choice of acts follow from. */
  readonly seed: number;
  readonly options: ChaosOptions;
  readonly events: readonly TimedEvent[];
  /** Messages that still wait for workers, though all calls are over. */
  readonly left: number;
  /** What workers have logged of a request. */
  logsOf(request: string): readonly string[];
}

/** Requests of which everything is told when promises are broken. */
const toldRequests = 5;

/** Fails with what was promised and not kept, and all that helps to find out why. */
export function expectPromisesKept(report: ChaosReport): void {
  const broken = brokenPromises(report);
  expect(broken, broken.length === 0 ? "" : explain(report, broken)).toEqual([]);
}

/** A line for each request, call, worker and act; the first word says which. */
export function brokenPromises({ events, options, left }: ChaosReport): readonly string[] {
  const requests = requestsOf(events);
  return [
    ...requests.flatMap((request) => brokenByRequest(request, events, options)),
    ...brokenByCall(requests),
    ...events.flatMap((event) =>
      event.kind === "ended" && !event.isGood ? `${event.worker} ended by ${event.how}` : [],
    ),
    ...(left > 0 ? [`chaos: ${left} messages were left behind`] : []),
    ...missing(events, options),
  ];
}

/** What has to be there for the chaos to show something. */
function missing(events: readonly ChaosEvent[], { calls, lanes }: ChaosOptions): readonly string[] {
  const made = events.filter(({ kind }) => kind === "over").length;
  const acts = new Set(events.map((event) => (event.kind === "act" ? event.act : undefined)));
  const succeeded = new Set(
    events.map((event) =>
      event.kind === "heard" && event.run ? toolOf(event.request) : undefined,
    ),
  );
  const isCancelled = events.some(
    (event) => event.kind === "heard" && event.ending === "CANCELLED",
  );
  return [
    ...(isCancelled ? [] : ["chaos: no call was cancelled"]),
    ...(made < calls ? [`chaos: only ${made} calls were made`] : []),
    ...lanes
      .flatMap((lane) => lane.acts)
      .filter((act) => !acts.has(act))
      .map((act) => `chaos: there was no "${act}"`),
    // One that must not run twice may also be answered that it was not run again: of all its calls
    // that would be cheap.
    ...chaosTools
      .filter((tool) => !succeeded.has(tool))
      .map((tool) => `chaos: no call of ${tool} succeeded`),
  ];
}

/** What happened, and how to have it happen again, as far as chance decides. */
function explain({ events, seed, logsOf }: ChaosReport, broken: readonly string[]): string {
  const calls = new Set(broken.flatMap((line) => /^call-\d+-(?=\d)/.exec(line) ?? []));
  const told = requestsOf(events)
    .map(({ name }) => name)
    .filter((name) => calls.has(name.replace(/\d+$/, "")))
    .slice(0, toldRequests);
  const ofRequest = (event: ChaosEvent, request: string): boolean =>
    "request" in event && event.request === request;
  return [
    `${broken.length} promises were broken. CHAOS_SEED=${seed} has the same done again, in the same order.`,
    ...broken,
    "What was done:",
    ...events.filter((event) => !("request" in event)).map(asLine),
    ...told.flatMap((request) => [
      `${request}, a call of ${toolOf(request)}:`,
      ...events.filter((event) => ofRequest(event, request)).map(asLine),
      ...logsOf(request),
    ]),
  ].join("\n");
}

function asLine({ atSeconds, ...facts }: TimedEvent): string {
  return `${atSeconds.toFixed(3).padStart(8)} ${Object.values(facts).join(" ")}`;
}
