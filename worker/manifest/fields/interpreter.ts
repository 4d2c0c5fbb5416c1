/**
 * The fields `python` and `node` of a tool: the interpreter that runs it, of those that the
 * operator allows. `runners/interpreters.ts` checks the permission.
 */
import { z } from "zod";
import { accepts } from "../../support/text/expectation.ts";

/** Longest name or path, in characters. */
const maxLength = 1024;

/** A version, another name, or an absolute path without control characters. */
const pattern = /^(?:[A-Za-z0-9][A-Za-z0-9._+-]{0,63}|\/[^\p{Cc}]+)$/u;

/** Whether a number, as it is written, is a version: `3.10` or `24`. */
export function isVersion(source: string | undefined): source is string {
  return source !== undefined && /^\d+(?:\.\d+)?$/.test(source);
}

/** The field. Other numbers than versions, and merged ones, are refused. */
export function interpreterField(example: string): z.ZodType<string | null | undefined> {
  const interpreter = accepts(
    `a version in quotes, such as "${example}", a name of the worker's interpreters, or the absolute path of one`,
  );
  return z.string(interpreter).max(maxLength, interpreter).regex(pattern, interpreter).nullish();
}
