/**
 * What is said to an attack's program, and what it says.
 */
import { isJsonObject, parseJson } from "../support/json/json.ts";

/** What a program says of its attempt. */
export interface ProgramAnswer {
  readonly reached: boolean;
  readonly evidence: string;
}

/** A program's answer, or undefined when the value is none. */
export function readProgramAnswer(value: unknown): ProgramAnswer | undefined {
  if (!isJsonObject(value)) return undefined;
  const { reached, evidence } = value;
  if (typeof reached !== "boolean" || typeof evidence !== "string") return undefined;
  return { reached, evidence };
}

/** The same from text. */
export function parseProgramAnswer(text: string): ProgramAnswer | undefined {
  try {
    return readProgramAnswer(parseJson(Buffer.from(text)));
  } catch {
    // Whatever else it printed is no answer.
    return undefined;
  }
}

/** The same record with names_like_this, down to its last record. */
export function withPythonNames(record: object): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(record).map(([name, value]: [string, unknown]) => [
      name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      isRecord(value) ? withPythonNames(value) : value,
    ]),
  );
}

function isRecord(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
