/**
 * Programs: source text that a call brings, in place of a tool's own code.
 */
import { z } from "zod";

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

const stream = z.string().refine((text) => Buffer.byteLength(text) <= maxStreamBytes);
const programResult = z.strictObject({
  value: z.unknown(),
  stdout: stream,
  stderr: stream,
  displays: z.array(z.unknown()).max(maxDisplays),
});

/** Whether it is what programs come to: value, stdout, stderr, displays. */
export function isProgramResult(result: unknown): boolean {
  return programResult.safeParse(result).success;
}
