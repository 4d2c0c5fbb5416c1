/**
 * What a call that fails is answered with, and what goes to stderr.
 */
import { isToolError } from "./context.js";
import { encode } from "./json.js";

const { from: bytesOf } = Buffer;
const { writeSync } = process.getBuiltinModule("node:fs");

/** Levels of causes that are told. */
const maxCauses = 5;
/** Errors of an AggregateError that are told. */
const maxErrors = 3;
/** Characters of each message. */
const maxMessageCharacters = 4_000;
/** Characters of a thrown value that is no error. */
const maxValueCharacters = 500;
/** Tries to write to a stderr that is full, a millisecond apart. */
const maxWrites = 100;
const unknownText = "(its text cannot be had)";
const here = `file://${import.meta.dirname}/`;

/** Limits of the sandbox that codes of the system's errors stand for. */
const limitCodes = new Map([
  ["ENOMEM", "memory"],
  ["EMFILE", "open_files"],
  ["EFBIG", "file_size"],
]);

/** A call that ends in an error answer: a code of the protocol and a text that may be published. */
export class Failure extends Error {
  #code;
  #limit;
  #data;

  /**
   * @param {"EXECUTION_ERROR" | "TOOL_ERROR" | "IMPORT_ERROR" | "TOOL_NOT_FOUND" |
   *   "RESOURCE_EXHAUSTED"} code
   * @param {string} text
   * @param {string} [limit] of the sandbox, which the tool met
   * @param {object} [data] facts for programs
   */
  constructor(code, text, limit, data) {
    super(text);
    this.#code = code;
    this.#limit = limit;
    this.#data = data;
  }

  get data() {
    return this.#data;
  }

  get limit() {
    return this.#limit;
  }

  get code() {
    return this.#code;
  }

  /**
   * Asks nothing of the value: a proxy that a tool throws may answer `instanceof` by throwing
   * again.
   *
   * @param {unknown} thrown
   * @returns {thrown is Failure}
   */
  static is(thrown) {
    return typeof thrown === "object" && thrown !== null && #code in thrown;
  }
}

/**
 * What to answer when the tool threw.
 *
 * @param {unknown} thrown
 */
export function failureOf(thrown) {
  if (!isToolError(thrown)) {
    return new Failure("EXECUTION_ERROR", `Tool threw ${describe(thrown)}`, limitMetBy(thrown));
  }
  const text = `${thrown.message}`;
  return new Failure("TOOL_ERROR", text || "The tool reported an error without a text");
}

/**
 * @param {{ module: string }} call
 * @param {string} reason
 */
export function importFailure({ module }, reason) {
  return new Failure("IMPORT_ERROR", `Module "${module}" cannot be imported: ${reason}`);
}

/** @param {unknown} thrown */
function limitMetBy(thrown) {
  try {
    return limitCodes.get(/** @type {NodeJS.ErrnoException} */ (thrown).code ?? "");
  } catch {
    // Whatever a getter of the tool's throws.
    return undefined;
  }
}

/**
 * Class and text of what was thrown, with its causes: `TypeError: fetch failed (cause: Error:
 * connect ECONNREFUSED)`. Total: the getters of a hostile error may throw.
 *
 * @param {unknown} thrown
 * @returns {string}
 */
export function describe(thrown) {
  return describeTo(thrown, maxCauses);
}

/**
 * @param {unknown} thrown
 * @param {number} levels of causes
 * @returns {string}
 */
function describeTo(thrown, levels) {
  if (!isErrorLike(thrown)) return describeValue(thrown);
  const text = attempt(() => beginning(String(thrown.message), maxMessageCharacters), unknownText);
  const named = text === "" ? nameOf(thrown) : `${nameOf(thrown)}: ${text}`;
  const causes = levels === 0 ? [] : causesOf(thrown).map((each) => describeTo(each, levels - 1));
  return causes.length === 0 ? named : `${named} (cause: ${causes.join("; ")})`;
}

/** @param {unknown} value */
function describeValue(value) {
  if (value === null || value === undefined) return `${value}`;
  if (typeof value === "function" || typeof value === "symbol") return `a ${typeof value}`;
  const text = attempt(() => (typeof value === "object" ? encode(value) : `${value}`), undefined);
  const kind = `${typeof value === "object" ? "an" : "a"} ${typeof value}`;
  return `${kind}: ${text === undefined ? unknownText : beginning(text, maxValueCharacters)}`;
}

/**
 * Prints what must not be published to stderr: the stack, without the runner's own frames but with
 * the lines of the tool's source, and those of its causes.
 *
 * @param {unknown} thrown
 */
export function printStack(thrown) {
  write(`${stackOf(thrown, maxCauses)}\n`);
}

/**
 * @param {unknown} thrown
 * @param {number} levels of causes
 * @returns {string}
 */
function stackOf(thrown, levels) {
  const stack = isErrorLike(thrown) ? attempt(() => thrown.stack, undefined) : undefined;
  if (!isErrorLike(thrown) || typeof stack !== "string") return `Uncaught ${describe(thrown)}`;
  const lines = stack.split("\n").filter((line) => !line.includes(here));
  const causes = levels === 0 ? [] : causesOf(thrown).map((each) => stackOf(each, levels - 1));
  return [withSource(lines).join("\n"), ...causes].join("\nCaused by: ");
}

/**
 * Loads what it needs at a failure only, and not as a promise: the process may be ending.
 *
 * @param {string[]} lines of a stack
 */
function withSource(lines) {
  return attempt(() => {
    const { createRequire } = process.getBuiltinModule("node:module");
    const loaded = /** @type {typeof import("./source-lines.js")} */ (
      createRequire(import.meta.url)("./source-lines.js")
    );
    return loaded.withSource(lines);
  }, lines);
}

/**
 * Says something of the runner's own on stderr.
 *
 * @param {string} message
 */
export function warn(message) {
  write(`tool_runner: ${message}\n`);
}

/**
 * The text itself, or a beginning of it that ends in "…" and has no more characters than there may
 * be.
 *
 * @param {string} text
 * @param {number} maxCharacters
 */
export function beginning(text, maxCharacters) {
  if (text.length <= maxCharacters) return text;
  const end = maxCharacters - 1;
  // Not between the two halves of a surrogate pair.
  return `${text.slice(0, (text.codePointAt(end - 1) ?? 0) > 0xffff ? end - 1 : end)}…`;
}

/**
 * @typedef {{ name?: unknown, message?: unknown, stack?: unknown, cause?: unknown, errors?: unknown
 *   }} ErrorLike
 */

/**
 * Also an error of another realm, such as a `vm` context.
 *
 * @param {unknown} value
 * @returns {value is ErrorLike}
 */
function isErrorLike(value) {
  return attempt(
    () =>
      typeof value === "object" && value !== null && (value instanceof Error || "stack" in value),
    false,
  );
}

/** @param {ErrorLike} error */
function nameOf(error) {
  const name = attempt(() => error.name, undefined);
  if (typeof name === "string" && name !== "" && name !== "Error") return name;
  // A class that extends Error has a name of its own only where its author set one.
  const className = attempt(() => error.constructor.name, "");
  return typeof className === "string" && className !== "" ? className : "Error";
}

/** @param {ErrorLike} error */
function causesOf(error) {
  return attempt(() => {
    const errors = Array.isArray(error.errors) ? error.errors.slice(0, maxErrors) : [];
    return error.cause === undefined ? errors : [error.cause, ...errors];
  }, []);
}

/**
 * @template Result, Otherwise
 * @param {() => Result} action
 * @param {Otherwise} otherwise
 */
function attempt(action, otherwise) {
  try {
    return action();
  } catch {
    return otherwise;
  }
}

/**
 * Writes to stderr at once, whatever the tool has made of `process.stderr`.
 *
 * @param {string} text
 */
function write(text) {
  let rest = bytesOf(text);
  for (let tries = 0; rest.length > 0 && tries < maxWrites; tries += 1) {
    try {
      rest = rest.subarray(writeSync(2, rest));
    } catch (error) {
      if (/** @type {NodeJS.ErrnoException} */ (error).code !== "EAGAIN") return;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
    }
  }
}
