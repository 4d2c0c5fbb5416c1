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

/** The field; YAML reads a version without quotes as a number, and 3.10 as 3.1. */
export function interpreterField(example: string): z.ZodType<string | null | undefined> {
  const interpreter = accepts(
    `a version in quotes, such as "${example}", a name of the worker's interpreters, or the absolute path of one`,
  );
  return z.string(interpreter).max(maxLength, interpreter).regex(pattern, interpreter).nullish();
}
