/**
 * Programs: source text that a call brings, in place of a tool's own code.
 */

/** Languages of programs. */
export const programLanguages = ["python", "typescript", "javascript"] as const;
export type ProgramLanguage = (typeof programLanguages)[number];

/** Largest source of a program, in bytes. */
export const maxCodeBytes = 256 * 1024;

/** Where a program failed, for its author: lines and columns of its source, from 1. */
export interface ProgramFailure {
  readonly line?: number | undefined;
  readonly column?: number | undefined;
  /** Its own lines, innermost first. */
  readonly stack?: readonly string[] | undefined;
}
