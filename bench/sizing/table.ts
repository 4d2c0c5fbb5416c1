/**
 * A sizing as Markdown: what a call costs, what the model makes of that, and what was measured.
 */
import { brokers } from "../names.ts";
import { type BenchHost, describeHost } from "../report.ts";
import {
  type Plant,
  type Prediction,
  machineFor,
  predict,
  processorSeconds,
  slotsFor,
} from "./model.ts";
import type { MeasuredKind, MeasuredSaturation, MeasuredSizing } from "./run.ts";
import type { Saturation } from "./saturate.ts";
import { ownSeconds } from "./use.ts";

const msPerSecond = 1000;
const bytesPerMebibyte = 1024 * 1024;
/** Percent by which a prediction may be off. */
export const maxErrorPercent = 15;
/** Processors of a worker in the table of workers alone. */
const coreCounts = [1, 2, 4, 8, 16];
/** Calls a second of one tool, for which machines are shown. */
const plannedRate = 400;

/** One run, as `bench/results/*-sizing.json` holds it. */
export interface SizingReport extends MeasuredSizing, BenchHost {}

/** The report as Markdown. */
export function formatSizing(report: SizingReport): string {
  return [
    `${describeSizing(report)}.`,
    "",
    "Milliseconds of one call:",
    "",
    "| tool | in its slot | template | processors, all | worker | its event loop | sandbox | broker | caller |",
    "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ...report.kinds.map(costLine),
    "",
    "MiB, and milliseconds until another sandbox is idle:",
    "",
    "| tool | worker | template | idle sandbox | running sandbox | refill |",
    "|---|---:|---:|---:|---:|---:|",
    ...report.kinds.map(memoryLine),
    "",
    "| broker of a light tool's calls | its milliseconds of one call | processors without calls |",
    "|---|---:|---:|",
    ...report.brokers.map(
      ({ broker, costs, calibration: { idleOtherCores } }) =>
        `| ${[brokers[broker], ms(costs.broker), idleOtherCores.toFixed(3)].join(" | ")} |`,
    ),
    "",
    "Calls a second, with the broker and the caller on the same machine:",
    "",
    "| tool | workers | slots | processors available | used | predicted | bound | measured | error | idle sandbox found |",
    "|---|---:|---:|---:|---:|---:|---|---:|---:|---:|",
    ...report.kinds.flatMap((kind) => kind.saturations.map((each) => saturationLine(kind, each))),
    "",
    errorLine(report),
  ].join("\n");
}

/** What one worker serves, by processors, with broker and caller on other machines. */
export function formatServed(report: SizingReport): string {
  return [
    `Calls a second, and the slots for them, by the costs of ${report.date}, commit ${report.commit}:`,
    "",
    `| tool | ${coreCounts.map((cores) => `${cores} ${cores === 1 ? "core" : "cores"}`).join(" | ")} | template's bound | event loop's |`,
    `|---|${coreCounts.map(() => "---:|").join("")}---:|---:|`,
    ...report.kinds.map(servedLine),
    "",
    `For ${plannedRate} calls a second of one tool, the least machine, and the workers on it:`,
    "",
    "| tool | cores | workers | slots of each | processor ms of a call |",
    "|---|---:|---:|---:|---:|",
    ...report.kinds.map(plannedLine),
  ].join("\n");
}

/** When, where and what a sizing was, in one line. */
export function describeSizing(report: SizingReport): string {
  return [describeHost(report), report.workDirs, brokers[report.broker]].join("; ");
}

/** What the model says of a measured number of workers; nothing that it measured is used. */
export function predictionOf(kind: MeasuredKind, saturation: MeasuredSaturation): Prediction {
  return predict(saturation.costs, plantOf(kind, saturation));
}

/** Relative error of the prediction, in percent. */
export function errorPercent(kind: MeasuredKind, saturation: MeasuredSaturation): number {
  const { callsPerSecond } = predictionOf(kind, saturation);
  return 100 * (callsPerSecond / measuredRate(saturation) - 1);
}

/** Other programs of the machine used some processors, so that those left are what there was. */
function plantOf({ calibration }: MeasuredKind, saturation: Saturation): Plant {
  const { workers, slots, availableCores } = saturation;
  const { idleWorkerCores, idleOtherCores } = calibration;
  return {
    ...{ workers, slots, cores: availableCores, isShared: true, clients: 1 },
    idleCores: workers * idleWorkerCores + idleOtherCores,
  };
}

function costLine({ name, costs }: MeasuredKind): string {
  const { slotSeconds, templateSeconds, worker, loop, sandbox, broker, client } = costs;
  const template = templateSeconds === 0 ? "" : ms(templateSeconds);
  const cells = [processorSeconds(costs, true), worker, loop, sandbox, broker, client].map(ms);
  return `| ${[name, ms(slotSeconds), template, ...cells].join(" | ")} |`;
}

function memoryLine({ name, calibration: { memory, refillSeconds } }: MeasuredKind): string {
  const { worker, template, idle, running } = memory;
  const cells = [worker, template, idle, running].map((bytes) =>
    bytes === 0 ? "" : (bytes / bytesPerMebibyte).toFixed(1),
  );
  return `| ${[name, ...cells, idle === 0 ? "" : ms(refillSeconds)].join(" | ")} |`;
}

function saturationLine(kind: MeasuredKind, saturation: MeasuredSaturation): string {
  const { workers, slots, calls, hits, use, availableCores } = saturation;
  const { callsPerSecond, bound } = predictionOf(kind, saturation);
  const error = errorPercent(kind, saturation);
  return `| ${[
    ...[kind.name, workers, slots, availableCores.toFixed(2)],
    (ownSeconds(use) / use.seconds).toFixed(2),
    ...[rate(callsPerSecond), bound, rate(measuredRate(saturation))],
    `${error > 0 ? "+" : ""}${error.toFixed(0)} % ${Math.abs(error) <= maxErrorPercent ? "✓" : "✗"}`,
    `${((100 * hits) / calls).toFixed(0)} %`,
  ].join(" | ")} |`;
}

function errorLine({ kinds }: SizingReport): string {
  const errors = kinds.flatMap((kind) =>
    kind.saturations.map((each) => Math.abs(errorPercent(kind, each))),
  );
  const within = errors.filter((error) => error <= maxErrorPercent).length;
  return `Of ${errors.length} predictions ${within} are within ${maxErrorPercent} %; the greatest error is ${Math.max(0, ...errors).toFixed(0)} %.`;
}

function servedLine({ name, costs, calibration }: MeasuredKind): string {
  const { idleWorkerCores: idleCores } = calibration;
  const cells = coreCounts.map((cores) => {
    const plant = { workers: 1, cores, idleCores, isShared: false };
    const slots = slotsFor(costs, plant);
    const { callsPerSecond } = predict(costs, { ...plant, slots });
    return `${rate(callsPerSecond)} (${slots})`;
  });
  const template = costs.templateSeconds === 0 ? "" : rate(1 / costs.templateSeconds);
  return `| ${[name, ...cells, template, rate(1 / costs.loop)].join(" | ")} |`;
}

function plannedLine({ name, costs, calibration }: MeasuredKind): string {
  const machine = machineFor(plannedRate, costs, calibration.idleWorkerCores);
  const { cores = "", workers = "", slots = "" } = machine ?? {};
  return `| ${[name, cores, workers, slots, ms(processorSeconds(costs, false))].join(" | ")} |`;
}

function measuredRate({ calls, use }: Saturation): number {
  return calls / use.seconds;
}

function ms(seconds: number): string {
  const value = seconds * msPerSecond;
  return value.toFixed(value < 10 ? 2 : 1);
}

function rate(callsPerSecond: number): string {
  return callsPerSecond.toFixed(callsPerSecond < 10 ? 1 : 0);
}
