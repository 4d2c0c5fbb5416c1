/**
 * The source of a stack: below each frame of the tool's own files the line that it names. Node has
 * them for uncaught errors only.
 */
const { closeSync, constants, fstatSync, openSync, readFileSync } =
  process.getBuiltinModule("node:fs");

/** Frames of a stack that get their line; V8 keeps ten unless the tool wants more. */
const maxFrames = 20;
/** Bytes of a file that is read. */
const maxFileBytes = 1024 * 1024;
/** Characters of a line that are shown. */
const maxLineCharacters = 160;

/** `at name (file:///tools/a.ts:4:22)`, `at /tools/a.cjs:4:22`. */
const frame = /^\s+at .*?\(?(?:file:\/\/)?(\/[^():]+):(\d+):(\d+)\)?$/;

/**
 * A stack with its source. Total: a stack is any text that the tool likes.
 *
 * @param {readonly string[]} lines of the stack
 * @returns {string[]}
 */
export function withSource(lines) {
  /** @type {Map<string, string[]>} */
  const files = new Map();
  let frames = 0;
  return lines.flatMap((line) => {
    const [, url = "", row, column] = frame.exec(line) ?? [];
    if (url === "" || url.includes("/node_modules/") || ++frames > maxFrames) return [line];
    const source = (files.get(url) ?? read(files, url))[Number(row) - 1];
    return source === undefined ? [line] : [line, ...excerpt(source, Number(column))];
  });
}

/**
 * @param {Map<string, string[]>} files
 * @param {string} url
 */
function read(files, url) {
  const lines = linesOf(url);
  files.set(url, lines);
  return lines;
}

/**
 * The lines of a plain file; none of what cannot be read.
 *
 * @param {string} url
 */
function linesOf(url) {
  let descriptor;
  try {
    // A pipe, which such a name may be, waits for nobody.
    descriptor = openSync(decodeURIComponent(url), constants.O_RDONLY | constants.O_NONBLOCK);
    const stats = fstatSync(descriptor);
    if (!stats.isFile() || stats.size > maxFileBytes) return [];
    return readFileSync(descriptor, "utf8").split(/\r?\n/);
  } catch {
    return [];
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}

/**
 * The line and a mark below the column, without what both are indented by.
 *
 * @param {string} source
 * @param {number} column 1-based
 */
function excerpt(source, column) {
  const text = source.trimStart();
  const at = column - 1 - (source.length - text.length);
  if (text === "") return [];
  const shown = text.slice(0, maxLineCharacters);
  const mark = at >= 0 && at < shown.length ? [`        ${" ".repeat(at)}^`] : [];
  return [`        ${shown}`, ...mark];
}
