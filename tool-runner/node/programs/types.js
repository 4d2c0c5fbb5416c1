/**
 * Programs in TypeScript: their types become spaces, so that lines and columns stay.
 */
import { quietly } from "./quiet.js";

/** @import { SyntaxMistake } from "./evaluator.js" */

/** Columns of a tab where Node shows the place of an error. */
const tabColumns = 4;

/**
 * Takes 40 ms more the first time.
 *
 * @param {string} source
 * @returns {{ source: string } | { mistake: SyntaxMistake }}
 */
export function stripTypes(source) {
  const { stripTypeScriptTypes } = process.getBuiltinModule("node:module");
  try {
    return { source: quietly(() => stripTypeScriptTypes(source)) };
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return { mistake: mistakeOf(error, source) };
  }
}

/**
 * The place is in the text before the stack: `:LINE`, then the source and a mark below it.
 *
 * @param {SyntaxError} error
 * @param {string} source
 * @returns {SyntaxMistake}
 */
function mistakeOf({ message, stack = "" }, source) {
  const line = Number(/^:(\d+)\n/.exec(stack)?.[1] ?? 1);
  const indent = /^( *)\^/m.exec(stack)?.[1]?.length ?? 0;
  let column = 1;
  for (let shown = 0; shown < indent; column += 1) {
    shown += source.split("\n")[line - 1]?.[column - 1] === "\t" ? tabColumns : 1;
  }
  return { message: `SyntaxError: ${message}`, line, column };
}
