/**
 * Names of the gateway's rows, and their aims: multiples of other rows of the same run.
 */
import type { Aim } from "../comparison.ts";
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

/** A call of the light tool by the worker's own code, by an agent and by a tool, after a pause. */
export const pausedRow = "call of the light tool, in process";
export const pausedAgentRow = "call of the light tool, through the DevBroker";
export function innerRow(language: CallingLanguage): string {
  return `call of the light tool, from ${language}`;
}

/** What rows may take. */
export const aims: readonly Aim[] = [
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
