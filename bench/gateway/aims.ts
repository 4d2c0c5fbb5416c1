/**
 * Names of the gateway's rows, and their aims: multiples of other rows of the same run.
 */
import type { Measurement } from "../measure.ts";
import { floorRow, startRow } from "../names.ts";
import { lightPython } from "../tools.ts";

/** Languages of tools that call. */
export const languages = ["Python", "JavaScript"] as const;
export type CallingLanguage = (typeof languages)[number];

/** Calls one after the other. */
export const callsInARow = 20;

/** Rows that others are compared with, beside the floor. */
export const inProcessRow = startRow(lightPython);
export const byAgentRow = `${callsInARow} calls of it through the DevBroker`;

/** The least that a program can be, and that of an entry with a gateway. */
export const programRow = "template start, program `__out = 1`";
export const callingProgramRow = "the same with a gateway";

/** One that makes all these calls, from the agent's message to the answer. */
export const byToolRow = `a call through the DevBroker that makes these ${callsInARow}`;

/** A question that no sandbox answers. */
export function listsRow(language: CallingLanguage): string {
  return `namespaces, asked from ${language}`;
}

/** A call of the light tool by the worker's own code, and by a tool, each after a pause. */
export const pausedRow = "call of the light tool, in process";
export function innerRow(language: CallingLanguage): string {
  return `call of the light tool, from ${language}`;
}

/** The most that a row may take, by the medians of others. */
export interface Aim {
  readonly row: string;
  readonly of: string;
  readonly factor: number;
  /** Of the floor, on top. */
  readonly floors: number;
}

const aims: readonly Aim[] = [
  ...languages.map((language) => ({
    ...{ row: listsRow(language), of: floorRow, factor: 0.25, floors: 0 },
  })),
  ...languages.map((language) => ({
    ...{ row: innerRow(language), of: pausedRow, factor: 1, floors: 0.5 },
  })),
  ...[programRow, callingProgramRow].map((row) => ({
    ...{ row, of: inProcessRow, factor: 1.2, floors: 0 },
  })),
  { row: byToolRow, of: byAgentRow, factor: 0.75, floors: 0 },
];

/** An aim, its bound in milliseconds, and whether the run reached it. */
export interface Judgement extends Aim {
  readonly boundMs: number;
  readonly isReached: boolean;
}

/** The aim of a row in its run; undefined for a row that has none. */
export function judge(
  { name, medianMs }: Measurement,
  rows: readonly Measurement[],
): Judgement | undefined {
  const aim = aims.find(({ row }) => row === name);
  if (aim === undefined) return undefined;
  const medianOf = (wanted: string): number =>
    rows.find((row) => row.name === wanted)?.medianMs ?? Number.NaN;
  const boundMs = aim.factor * medianOf(aim.of) + aim.floors * medianOf(floorRow);
  return { ...aim, boundMs, isReached: medianMs <= boundMs };
}
