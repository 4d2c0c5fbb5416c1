/**
 * Programs: source text that a call brings, in place of a tool's own code.
 */
import type { Json, JsonObject } from "../../support/json/json.ts";

/** Languages of programs. */
export const programLanguages = ["python", "typescript", "javascript"] as const;
export type ProgramLanguage = (typeof programLanguages)[number];

/** Where a program failed, for its author: lines and columns of its source, from 1. */
export interface ProgramFailure {
  readonly line?: number | undefined;
  readonly column?: number | undefined;
  /** Its own lines, innermost first. */
  readonly stack?: readonly string[] | undefined;
}

/** Bytes of a stream in a result; the runner's mark of a cut one is beyond them. */
const maxStreamBytes = 64 * 1024 + 16;
/** Values that a program displays. */
const maxDisplays = 100;

const members = ["value", "stdout", "stderr", "displays"];

/** Whether it is what programs come to: value, stdout, stderr, displays, and nothing else. */
export function isProgramResult(result: JsonObject): boolean {
  const { stdout, stderr, displays } = result;
  const isWhole = members.every((name) => Object.hasOwn(result, name));
  return (
    isWhole &&
    Object.keys(result).length === members.length &&
    [stdout, stderr].every(isStream) &&
    Array.isArray(displays) &&
    displays.length <= maxDisplays
  );
}

function isStream(text: Json | undefined): boolean {
  return typeof text === "string" && Buffer.byteLength(text) <= maxStreamBytes;
}
