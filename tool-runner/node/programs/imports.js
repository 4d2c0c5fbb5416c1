/**
 * Imports of a program, which is a script: those have no `import` statement, and their `import()`
 * has nothing to resolve by. Both become calls of a function of the runner.
 *
 * A source is not parsed here. V8 tells where an `import` is by the error that it has for it.
 */

import { quietly } from "./quiet.js";

/** @import { Evaluator, SyntaxMistake } from "./evaluator.js" */

/** In place of `import`, with as many characters, so that columns stay. */
export const importName = "\u{12d}mport";

/** Statements and calls of a program. */
const maxImports = 200;

const statementMessage = "SyntaxError: Cannot use import statement outside a module";
const metaMessage = "SyntaxError: Cannot use 'import.meta' outside a module";

/** `import a, { b as c } from "module" with { type: "json" }` */
const statement =
  /import\s*(?:(?<clause>(?:\/\*[^]*?\*\/|\/\/[^\n]*|[^"';/])+?)\s*\bfrom\s*)?(?<quote>["'])(?<specifier>[^"'\n]*)\k<quote>(?:\s*with\s*(?<attributes>\{[^}]*\}))?/y;
const comments = /\/\*[^]*?\*\/|\/\/[^\n]*/g;
const clauseParts =
  /^(?:(?<whole>[^\s{},*]+)\s*,?\s*)?(?:\*\s*as\s+(?<all>\S+)|\{(?<named>[^}]*)\})?$/;
const namedPart = /^(?<name>\S+?)(?:\s+as\s+(?<local>\S+))?$/;
const call = /\bimport(?=\s*\()/g;

/**
 * An import that another text has replaced, in columns of its line: from `start` to before `end`,
 * with `added` columns more than before.
 *
 * @typedef {{ line: number, start: number, end: number, added: number }} Replaced
 */

/**
 * The column that a place had before its imports were replaced.
 *
 * @param {{ line: number, column: number }} place
 * @param {readonly Replaced[]} replaced
 */
export function originalColumn({ line, column }, replaced) {
  let added = 0;
  for (const each of replaced) {
    if (each.line !== line || column < each.start) continue;
    if (column < each.end) return each.start - added;
    added += each.added;
  }
  return column - added;
}

/**
 * A source whose imports are calls of `importName`, with the same lines.
 *
 * @param {string} source
 * @param {Evaluator} evaluator
 * @returns {Promise<{ source: string, replaced: Replaced[] } | { mistake: SyntaxMistake }>}
 */
export async function withoutImports(source, evaluator) {
  /** @type {Replaced[]} */
  const replaced = [];
  let text = source;
  for (let count = 0; ; count += 1) {
    const mistake = await evaluator.mistakeIn(text);
    if (mistake === undefined) break;
    const place = { ...mistake, column: originalColumn(mistake, replaced) };
    if (mistake.message !== statementMessage) return { mistake: place };
    const next = count < maxImports ? replaceStatement(text, mistake) : undefined;
    const message = "SyntaxError: This import is not supported in a program";
    if (next === undefined) return { mistake: { ...place, message } };
    text = next.source;
    replaced.push(next.replaced);
  }
  return { source: await withoutCalls(text, evaluator), replaced };
}

/**
 * @param {string} source
 * @param {SyntaxMistake} place of the `import`
 * @returns {{ source: string, replaced: Replaced } | undefined} undefined for a form that is not
 *   known here
 */
function replaceStatement(source, { line, column }) {
  const before = source.split("\n").slice(0, line - 1);
  const start = before.reduce((sum, { length }) => sum + length + 1, column - 1);
  statement.lastIndex = start;
  const { 0: whole = "", groups = {} } = statement.exec(source) ?? {};
  const { clause, specifier, attributes } = groups;
  const names = whole === "" ? undefined : namesOf(clause);
  if (names === undefined) return undefined;
  const { all, pairs } = names;
  const expected = JSON.stringify(pairs.map(({ name }) => name));
  const options = attributes === undefined ? "{}" : `{ with: ${attributes} }`;
  const imported = `await ${importName}(${JSON.stringify(specifier)}, ${options}, ${expected})`;
  const members = `{ ${pairs.map(({ name, local }) => `${name}: ${local}`).join(", ")} }`;
  const replacement =
    all === undefined
      ? `const ${members} = ${imported};`
      : `const ${all} = ${imported}, ${members} = ${all};`;
  const [first = "", ...further] = whole.split("\n");
  // Columns of the last line stay.
  const rest = further.map((each) => `\n${" ".repeat(each.length)}`).join("");
  return {
    source: `${source.slice(0, start)}${replacement}${rest}${source.slice(start + whole.length)}`,
    replaced: {
      line,
      start: column,
      end: column + replacement.length,
      added: replacement.length - first.length,
    },
  };
}

/**
 * What an import declares: a name for all of the module, and exports under local names.
 *
 * @param {string | undefined} clause of an import with a `from`
 * @returns {{ all: string | undefined, pairs: { name: string, local: string }[] } | undefined}
 */
function namesOf(clause) {
  if (clause === undefined) return { all: undefined, pairs: [] };
  const { groups } = clauseParts.exec(clause.replace(comments, " ").trim()) ?? {};
  if (groups === undefined) return undefined;
  const { whole, all, named = "" } = groups;
  const pairs = whole === undefined ? [] : [{ name: "default", local: whole }];
  for (const part of named.split(",").map((part) => part.trim())) {
    if (part === "") continue;
    const { name, local = name } = namedPart.exec(part)?.groups ?? {};
    if (name === undefined || local === undefined) return undefined;
    pairs.push({ name, local });
  }
  return { all, pairs };
}

/**
 * Replaces each `import(`, and nothing of that form in a text, a comment or a name.
 *
 * @param {string} source without syntax errors
 * @param {Evaluator} evaluator
 */
async function withoutCalls(source, evaluator) {
  let text = source;
  const places = [...source.matchAll(call)].slice(0, maxImports);
  for (const { index } of places) {
    const [head, tail] = [text.slice(0, index), text.slice(index + "import".length)];
    // Only where it is the word of the language does V8 take this for what it refuses.
    const mistake = await evaluator.mistakeIn(`${head}import.meta${tail}`);
    if (mistake?.message === metaMessage) text = `${head}${importName}${tail}`;
  }
  return text;
}

/**
 * What a program's imports become calls of: imports as a module at a path does, and throws
 * SyntaxError where an export is not there.
 *
 * @param {string} file need not exist
 */
export function importerFrom(file) {
  const { Script, constants } = process.getBuiltinModule("node:vm");
  const script = new Script("(specifier, options) => import(specifier, options)", {
    filename: file,
    importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  });
  const load = script.runInThisContext();
  /**
   * @param {string} specifier
   * @param {ImportCallOptions} [options]
   * @param {readonly string[]} [names]
   */
  return async (specifier, options, names = []) => {
    const loaded = await quietly(() => load(specifier, options));
    const missing = names.find((name) => !(name in loaded));
    if (missing === undefined) return loaded;
    throw new SyntaxError(
      `The module '${specifier}' does not provide an export named '${missing}'`,
    );
  };
}
