/**
 * Encodes the arguments of an attack's program, and decodes its answer.
 */
import { isJsonObject, parseJson } from "../support/json/json.ts";

/** The answer of a program. */
export interface ProgramAnswer {
  readonly reached: boolean;
  readonly evidence: string;
}

/** Decodes an answer; undefined when the value is none. */
export function readProgramAnswer(value: unknown): ProgramAnswer | undefined {
  if (!isJsonObject(value)) return undefined;
  const { reached, evidence } = value;
  if (typeof reached !== "boolean" || typeof evidence !== "string") return undefined;
  return { reached, evidence };
}

/** Decodes an answer from JSON; undefined when the text is none. */
export function parseProgramAnswer(text: string): ProgramAnswer | undefined {
  try {
    return readProgramAnswer(parseJson(Buffer.from(text)));
  } catch {
    // Other output of the program.
    return undefined;
  }
}

/** The record with names_like_this, recursively. */
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
