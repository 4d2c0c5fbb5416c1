/**
 * What is aimed at, row by row, and whether a run reached it: as it stands, or as a multiple of the
 * floor.
 */
import type { Measurement } from "./measure.ts";
import { batchRows, brokerRow, floorRow, loopRows, missRow, resultRow, startRow } from "./names.ts";
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
  /** Whether it is one for a machine of a known speed. */
  readonly isOfMachine: boolean;
}

/** An aim next to what was measured. */
export interface Judgement extends Aim {
  readonly value: number;
  readonly isReached: boolean;
  /**
   * The same bound for a machine of this one's speed; undefined for an aim of which that says
   * nothing.
   */
  readonly here: { readonly bound: number; readonly isReached: boolean } | undefined;
}

/**
 * The floor's median, in milliseconds, on the machine for which the aims were set. Only multiples
 * of it can be compared.
 */
export const aimedFloorMs = 0.5;

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
  "× one worker": (row: Measurement, { rows }: Run) => {
    const batch = batchRows.find(({ shared }) => shared === row.name);
    const alone = rows.find(({ name }) => name === batch?.alone);
    return divided(alone?.medianMs, row.medianMs);
  },
  MB: (row: Measurement) => divided(row.parkedBytes, bytesPerMegabyte),
} as const;

type Figure = keyof typeof figures;

/** A time, which a slower machine makes longer. */
function within(row: string, figure: "median" | "p99", bound: number): Aim {
  return { row, figure, sign: "≤", bound, isOfMachine: true };
}

/** An amount that is the same on every machine. */
function atMost(row: string, figure: Figure, bound: number): Aim {
  return { row, figure, sign: "≤", bound, isOfMachine: false };
}

const templateTools = tools.filter(({ start }) => start === "template");

/** Every aim: on two shared cores, milliseconds, the tool's own work excluded. */
const aims: readonly Aim[] = [
  ...templateTools.map((tool) => atMost(startRow(tool), "MB", 4)),
  {
    ...{ row: startRow(typicalPython), figure: "per second and core", sign: "≥", bound: 150 },
    isOfMachine: true,
  },
  {
    ...{ row: startRow(typicalPython), figure: "× cold per second", sign: "≥", bound: 7 },
    isOfMachine: false,
  },
  ...warmTools.flatMap((tool) => [
    within(resultRow(tool), "median", 1),
    within(resultRow(tool), "p99", 5),
    within(brokerRow("memory", tool), "median", 2),
    within(brokerRow("dev", tool), "median", 3),
  ]),
  within(missRow, "median", 6),
  ...batchRows.map(({ shared }): Aim => ({
    ...{ row: shared, figure: "× one worker", sign: "≥", bound: 3.5 },
    isOfMachine: false,
  })),
  ...Object.values(loopRows).map((row) => atMost(row, "p99", 10)),
];

/** The aims whose rows were measured. */
export function judge(run: Run): readonly Judgement[] {
  const slowness = slownessOf(run);
  return aims.flatMap((aim) => {
    const row = run.rows.find(({ name }) => name === aim.row);
    const value = row && figures[aim.figure](row, run);
    if (value === undefined || !Number.isFinite(value)) return [];
    const isWithin = (bound: number): boolean =>
      aim.sign === "≤" ? value <= bound : value >= bound;
    const bound = boundHere(aim, slowness);
    const here = bound === undefined ? undefined : { bound, isReached: isWithin(bound) };
    return [{ ...aim, value, isReached: isWithin(aim.bound), here }];
  });
}

/**
 * How many times longer the floor takes than where the aims were set; undefined for a run without
 * it.
 */
export function slownessOf({ rows }: Pick<Run, "rows">): number | undefined {
  return divided(rows.find(({ name }) => name === floorRow)?.medianMs, aimedFloorMs);
}

function boundHere(
  { sign, bound, isOfMachine }: Aim,
  slowness: number | undefined,
): number | undefined {
  if (!isOfMachine || slowness === undefined) return undefined;
  return sign === "≤" ? bound * slowness : bound / slowness;
}

function divided(value: number | undefined, by: number | undefined): number | undefined {
  return value === undefined || by === undefined ? undefined : value / by;
}
