/**
 * What is aimed at, row by row, and whether a run reached it.
 */
import type { Measurement } from "./measure.ts";
import { brokerRow, insideRow, loopRows, missRow, startRow } from "./names.ts";
import { tools, typicalCold, typicalPython, warmTools } from "./tools.ts";

/** What is known of a run beside the row that an aim is about. */
export interface Run {
  readonly rows: readonly Measurement[];
  readonly machine: { readonly cores: number };
}

/** A bound on one number of a row. */
interface Aim {
  readonly row: string;
  readonly figure: Figure;
  readonly sign: "≤" | "≥";
  readonly bound: number;
}

/** An aim next to what was measured. */
export interface Judgement extends Aim {
  readonly value: number;
  readonly isReached: boolean;
}

const bytesPerMegabyte = 1024 * 1024;

/** The numbers that aims are about, in the words of the table. */
const figures = {
  median: (row: Measurement) => row.medianMs,
  p99: (row: Measurement) => row.p99Ms,
  "per second and core": (row: Measurement, { machine }: Run) =>
    divided(row.callsPerSecond, machine.cores),
  "× cold per second": (row: Measurement, { rows }: Run) => {
    const cold = rows.find(({ name }) => name === startRow(typicalCold("Python")));
    return divided(row.callsPerSecond, cold?.callsPerSecond);
  },
  MB: (row: Measurement) => divided(row.parkedBytes, bytesPerMegabyte),
} as const;

type Figure = keyof typeof figures;

function atMost(row: string, figure: Figure, bound: number): Aim {
  return { row, figure, sign: "≤", bound };
}

function atLeast(row: string, figure: Figure, bound: number): Aim {
  return { row, figure, sign: "≥", bound };
}

const templateTools = tools.filter(({ start }) => start === "template");

/** Every aim: on two shared cores, milliseconds, the tool's own work excluded. */
const aims: readonly Aim[] = [
  ...templateTools.map((tool) => atMost(startRow(tool), "MB", 4)),
  atLeast(startRow(typicalPython), "per second and core", 150),
  atLeast(startRow(typicalPython), "× cold per second", 7),
  ...warmTools.flatMap((tool) => [
    atMost(insideRow(tool), "median", 1),
    atMost(insideRow(tool), "p99", 5),
    atMost(brokerRow("memory", tool), "median", 2),
    atMost(brokerRow("dev", tool), "median", 3),
  ]),
  atMost(missRow, "median", 6),
  ...Object.values(loopRows).map((row) => atMost(row, "p99", 10)),
];

/** The aims whose rows were measured. */
export function judge(run: Run): readonly Judgement[] {
  return aims.flatMap((aim) => {
    const row = run.rows.find(({ name }) => name === aim.row);
    const value = row && figures[aim.figure](row, run);
    if (value === undefined || !Number.isFinite(value)) return [];
    const isReached = aim.sign === "≤" ? value <= aim.bound : value >= aim.bound;
    return [{ ...aim, value, isReached }];
  });
}

function divided(value: number | undefined, by: number | undefined): number | undefined {
  return value === undefined || by === undefined ? undefined : value / by;
}
