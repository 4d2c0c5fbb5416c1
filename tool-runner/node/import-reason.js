/**
 * Why a module cannot be imported, with the place where Node does not say it. Loaded only when one
 * cannot.
 */
import { spawnSync } from "node:child_process";
import { describe } from "./errors.js";

/** Milliseconds to wait for a second opinion. */
const secondOpinionMs = 2_000;

/**
 * @param {unknown} thrown
 * @param {{ file: string, url: string }} module that was to be imported
 * @returns {string}
 */
export function importReasonOf(thrown, { file, url }) {
  const missing = /** @type {NodeJS.ErrnoException & { url?: string }} */ (Object(thrown));
  if (missing.code === "ERR_MODULE_NOT_FOUND" && missing.url === url)
    return "there is no such file";
  const reason = describe(thrown);
  if (!(thrown instanceof SyntaxError)) return reason;
  const stack = `${thrown.stack}`;
  const place = placeIn(stack) ?? (isOfCompiler(stack) ? placeByTryingAgain(file) : undefined);
  return place === undefined ? reason : `${reason} (${place})`;
}

/**
 * Node puts the line that is wrong before the stack: `file:///tools/node/a.js:3`.
 *
 * @param {string} text
 */
function placeIn(text) {
  const [, path, line] = /^(?:file:\/\/)?(\/.+):(\d+)\n/.exec(text) ?? [];
  return path === undefined ? undefined : `${decodeURI(path)}, line ${line}`;
}

/**
 * Whether V8 refused a module before any of it ran.
 *
 * @param {string} stack
 */
function isOfCompiler(stack) {
  return stack.split("\n")[1]?.includes("compileSourceTextModule") === true;
}

/**
 * The place of an error that V8 told Node but Node tells only on stderr, and only when the error
 * ends the process.
 *
 * @param {string} file
 */
function placeByTryingAgain(file) {
  const { stderr } = spawnSync(process.execPath, [file], {
    stdio: ["ignore", "ignore", "pipe"],
    encoding: "utf8",
    timeout: secondOpinionMs,
  });
  return placeIn(stderr ?? "");
}
