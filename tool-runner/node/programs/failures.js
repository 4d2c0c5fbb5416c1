/**
 * What a program that fails is answered with: its author has to repair it.
 */
import { isToolError } from "../context.js";
import { Failure, describe, failureOf } from "../errors.js";

/** @import { SyntaxMistake } from "./evaluator.js" */

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
 * @param {{ name: string, source: string }} script
 * @returns {Failure}
 */
export function programFailure(thrown, { name, source }) {
  const failure = failureOf(thrown);
  if (isToolError(thrown)) return failure;
  const lines = source.split("\n");
  const frames = framesIn(stackOf(thrown), name);
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
 * @param {string} name of the script
 */
function framesIn(stack, name) {
  const place = `${RegExp.escape(name)}:(\\d+):(\\d+)`;
  const frame = new RegExp(`^\\s+at (?:async )?(?:(.+) \\()?${place}\\)?$`);
  return stack.split("\n").flatMap((text) => {
    const [, within = "", line, column] = frame.exec(text) ?? [];
    return line === undefined ? [] : [{ within, line: Number(line), column: Number(column) }];
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
