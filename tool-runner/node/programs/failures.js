/**
 * What a program that fails is answered with: its author has to repair it.
 */
import { isToolError } from "../context.js";
import { Failure, describe, failureOf } from "../errors.js";
import { originalColumn } from "./imports.js";

/** @import { SyntaxMistake } from "./evaluator.js" */
/** @import { Replaced } from "./imports.js" */

/**
 * What runs: its name in stacks, the author's source, and what has been replaced in it.
 *
 * @typedef {{ name: string, source: string, replaced: readonly Replaced[] }} Script
 */

/** Lines of a stack. */
const maxFrames = 20;
/** Characters of a line of the source that is shown. */
const maxSourceCharacters = 160;

/**
 * @param {SyntaxMistake} mistake
 * @returns {Failure}
 */
export function syntaxFailure({ message, line, column }) {
  const text = `${message} (line ${line}, column ${column})`;
  return new Failure("EXECUTION_ERROR", text, undefined, { line, column });
}

/**
 * @param {unknown} thrown
 * @param {Script} script
 * @returns {Failure}
 */
export function programFailure(thrown, script) {
  const failure = failureOf(thrown);
  if (isToolError(thrown)) return failure;
  const lines = script.source.split("\n");
  const frames = framesIn(stackOf(thrown), script);
  const [top] = frames;
  const place = top === undefined ? "" : ` (line ${top.line})`;
  const stack = frames.slice(0, maxFrames).map(({ line, column, within }) => {
    const shown = (lines[line - 1] ?? "").trim().slice(0, maxSourceCharacters);
    return `line ${line}, column ${column}${within === "" ? "" : `, in ${within}`}: ${shown}`;
  });
  return new Failure(
    "EXECUTION_ERROR",
    `Program threw ${describe(thrown)}${place}`,
    failure.limit,
    top === undefined ? undefined : { line: top.line, column: top.column, stack },
  );
}

/**
 * The frames of the program itself: `at f (program.ts:4:22)`, `at async program.ts:9:1`.
 *
 * @param {string} stack
 * @param {Script} script
 */
function framesIn(stack, { name, replaced }) {
  const place = `${RegExp.escape(name)}:(\\d+):(\\d+)`;
  const frame = new RegExp(`^\\s+at (?:async )?(?:(.+) \\()?${place}\\)?$`);
  return stack.split("\n").flatMap((text) => {
    const [found, within = "", ...numbers] = frame.exec(text) ?? [];
    if (found === undefined) return [];
    const [line = 0, column = 0] = numbers.map(Number);
    return [{ within, line, column: originalColumn({ line, column }, replaced) }];
  });
}

/** @param {unknown} thrown */
function stackOf(thrown) {
  try {
    return `${Object(thrown).stack}`;
  } catch {
    // Whatever a getter of the program's throws.
    return "";
  }
}
