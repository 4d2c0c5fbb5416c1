/**
 * The source of programs: types are taken out, and mistakes are found with their place.
 */
import { stripTypeScriptTypes } from "node:module";

/** A mistake in a source, by lines and columns from 1. */
export interface Mistake {
  readonly message: string;
  readonly line: number;
  readonly column: number;
}

/** A byte order mark, and a first line that is for a shell. */
const preamble = /^\ufeff?(?:#!.*)?/;
/** Columns of a tab where Node shows the place of an error. */
const tabColumns = 4;
const importMessage = "SyntaxError: Programs in wasm cannot import or export: they have no modules";

/**
 * The JavaScript of a program, on the same lines and columns. Throws what leaves the stripper
 * unusable, such as its trap at deep nesting.
 */
export function prepareSource(
  code: string,
  language: string,
): { readonly source: string } | { readonly mistake: Mistake } {
  const text = code.replace(preamble, "");
  if (language !== "typescript") return { source: text };
  try {
    return { source: stripTypeScriptTypes(text) };
  } catch (error) {
    if (!isMistake(error)) throw error;
    return { mistake: strippingMistake(error, text) };
  }
}

function isMistake(error: unknown): error is Error {
  const { code = "" } = error as NodeJS.ErrnoException;
  return /^ERR_(?:INVALID|UNSUPPORTED)_TYPESCRIPT_SYNTAX$/.test(code);
}

/** The place is in the text before the stack: `:LINE`, then the source and a mark below it. */
function strippingMistake({ message, stack = "" }: Error, source: string): Mistake {
  const line = Number(/^:(\d+)\n/.exec(stack)?.[1] ?? 1);
  const indent = /^( *)\^/m.exec(stack)?.[1]?.length ?? 0;
  let column = 1;
  for (let shown = 0; shown < indent; column++) {
    shown += source.split("\n")[line - 1]?.[column - 1] === "\t" ? tabColumns : 1;
  }
  return { message: `SyntaxError: ${message}`, line, column };
}

/**
 * What the engine says of a source that it did not compile; undefined for another error.
 *
 * @param stack the frame of the mistake
 */
export function engineMistake(
  message: string,
  stack: string,
  source: string,
  name: string,
): Mistake | undefined {
  const [, line, column] = new RegExp(`${RegExp.escape(name)}:(\\d+):(\\d+)`).exec(stack) ?? [];
  if (line === undefined || column === undefined) return undefined;
  const place = { line: Number(line), column: Number(column) };
  const text = source.split("\n")[place.line - 1] ?? "";
  const before = text.slice(0, place.column - 1);
  const isModule =
    /(?:^|[;}\s])(?:import|export)\s*$/.test(before) ||
    /^(?:import|export)\b/.test(text.slice(before.length));
  return { message: isModule ? importMessage : `SyntaxError: ${message}`, ...place };
}
