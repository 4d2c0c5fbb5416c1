/**
 * Reads runner_args.json, writes result.json. See tool-runner/PROTOCOL.md.
 */
import { Failure, beginning, describe } from "./errors.js";
import { NotJson, encode } from "./json.js";

// Taken before the tool is loaded, which may replace them by accident or for its tests.
const { closeSync, openSync, readFileSync, renameSync, unlinkSync, writeSync } =
  process.getBuiltinModule("node:fs");
const { parse, stringify } = JSON;
const { byteLength, from: bytesOf } = Buffer;
const { entries, fromEntries } = Object;
const { isArray } = Array;
const { isInteger } = Number;
const { pid } = process;

const errorMaxCharacters = 4_000;

/** The description of a call of nothing: its result has no place, and nobody gets its statuses. */
export const nothing =
  '{"module":"m","function":"f","result_file":"/dev/null/none","output_dir":"o","tools_dir":"t",' +
  '"status_pipe":"/dev/null"}';

/**
 * One call as runner_args.json describes it; the file's members.
 *
 * @typedef {object} Call
 * @property {string} module
 * @property {string} function
 * @property {string} result_file
 * @property {string} output_dir
 * @property {string} tools_dir
 * @property {Record<string, unknown>} args
 * @property {Record<string, unknown>} tool_config
 * @property {Record<string, string>} artifact_paths
 * @property {Record<string, { filename: string }>} artifact_metadata
 * @property {string} status_pipe
 * @property {string} user_id
 * @property {string} session_id
 * @property {string} app_name
 * @property {string} task_id
 * @property {number} max_result_bytes
 * @property {boolean} load_only
 * @property {boolean} describe
 * @property {number} deadline_ms
 * @property {string} traceparent
 * @property {string} tracestate
 * @property {{ fd?: number, path?: string, max_concurrent_calls?: number }} gateway
 * @property {{ language?: string }} program in place of module and function
 */

/** What a member is when it is absent or null; its type is the type it must have. */
const defaults = /** @type {const} */ ({
  module: "",
  function: "",
  result_file: "",
  output_dir: "",
  tools_dir: "",
  args: {},
  tool_config: {},
  artifact_paths: {},
  artifact_metadata: {},
  status_pipe: "",
  user_id: "",
  session_id: "",
  app_name: "",
  task_id: "",
  max_result_bytes: 10_000_000,
  load_only: false,
  describe: false,
  deadline_ms: 0,
  traceparent: "",
  tracestate: "",
  gateway: {},
  program: {},
});

/** Node marks those that it inherits close-on-exec, but these first ones only. */
const descriptors = { min: 3, max: 15 };

const required = ["result_file", "output_dir", "tools_dir"];
const requiredOfTools = ["module", "function"];
const languages = ["javascript", "typescript"];

/**
 * Reads the description of the call and removes the file, whose tool_config may hold secrets.
 *
 * @param {string} path
 * @returns {Call}
 * @throws {Error} when it cannot be read or does not describe a call; the text quotes nothing of
 *   the file
 */
export function takeCall(path) {
  const document = readFileSync(path, "utf8");
  try {
    unlinkSync(path);
  } catch {
    // A read-only directory: then it is the worker that removes it.
  }
  return parseCall(document);
}

/**
 * @param {string} document what runner_args.json holds
 * @returns {Call}
 * @throws {Error} as {@link takeCall} does
 */
export function parseCall(document) {
  const members = parseQuietly(document);
  if (kindOf(members) !== "an object") {
    throw new TypeError(`the file must hold an object, not ${kindOf(members)}`);
  }
  const taken = entries(defaults).map(([name, absent]) => {
    const value = /** @type {Record<string, unknown>} */ (members)[name] ?? absent;
    if (kindOf(value) !== kindOf(absent)) {
      throw new TypeError(`"${name}" must be ${kindOf(absent)}, not ${kindOf(value)}`);
    }
    return [name, value];
  });
  const call = /** @type {Call} */ (fromEntries(taken));
  const { language } = call.program;
  if (language !== undefined) checkProgram(language, call.args);
  const names = language === undefined ? [...requiredOfTools, ...required] : required;
  for (const name of names) {
    if (call[/** @type {keyof Call} */ (name)] === "") throw new TypeError(`"${name}" is missing`);
  }
  const { fd = descriptors.min, path = "", max_concurrent_calls: maxCalls = 1 } = call.gateway;
  if (!isInteger(fd) || fd < descriptors.min || fd > descriptors.max) {
    throw new TypeError(`"gateway.fd" must be from ${descriptors.min} to ${descriptors.max}`);
  }
  if (typeof path !== "string") throw new TypeError('"gateway.path" must be a string');
  if (!isInteger(maxCalls) || maxCalls < 1) {
    throw new TypeError('"gateway.max_concurrent_calls" must be a whole number from 1');
  }
  return call;
}

/**
 * @param {string} language
 * @param {Record<string, unknown>} args
 */
function checkProgram(language, { code, inputs = {} }) {
  if (!languages.includes(language)) {
    throw new TypeError(`"program.language" must be ${languages.join(" or ")}`);
  }
  if (typeof code !== "string") throw new TypeError('"args.code" must be a text');
  if (kindOf(inputs) !== "an object") throw new TypeError('"args.inputs" must be an object');
}

/**
 * The document for a call whose tool returned. An object is the result as it is; of anything else,
 * its text is.
 *
 * @param {unknown} returned
 * @param {Iterable<readonly [string, object]>} outputs what was said of each output artifact, by
 *   filename
 * @param {Pick<Call, "max_result_bytes">} call
 * @returns {string}
 * @throws {Failure} for a value that JSON cannot express or that is too large
 */
export function resultDocument(returned, outputs, { max_result_bytes: maxBytes }) {
  const document = `{"result":${resultOf(returned)},"outputs":${encode(new Map(outputs))}}`;
  const sizeBytes = byteLength(document);
  if (sizeBytes <= maxBytes) return document;
  throw new Failure(
    "RESOURCE_EXHAUSTED",
    `The tool's result takes ${sizeBytes} bytes as JSON, more than the ${maxBytes} that are accepted;` +
      " large data can be saved as an artifact",
  );
}

/**
 * The document for a call that failed, with paths made relative to the directories that the tool
 * knows.
 *
 * @param {Failure} failure
 * @param {Pick<Call, "result_file" | "tools_dir">} call
 */
export function errorDocument(failure, { result_file: resultFile, tools_dir: toolsDir }) {
  const { code, limit, data } = failure;
  let text = failure.message;
  const known = [dirname(resultFile), toolsDir, dirname(toolsDir), import.meta.dirname];
  // The longest first: of a directory that lies in another one the rest would stay.
  for (const directory of known.toSorted((one, other) => other.length - one.length)) {
    if (directory === "") continue;
    text = text.replaceAll(`file://${directory}/`, "").replaceAll(`${directory}/`, "");
  }
  const met = limit === undefined ? "" : `,"error_limit":"${limit}"`;
  const facts = data === undefined ? "" : `,"error_data":${stringify(data)}`;
  const error = stringify(beginning(text, errorMaxCharacters));
  return `{"error":${error},"error_code":"${code}"${met}${facts}}`;
}

/**
 * Puts a document in place in one step: a reader finds all of it or nothing. Where there is no room
 * for it, puts an error in place that says so.
 *
 * @param {string} document
 * @param {Pick<Call, "result_file" | "tools_dir">} call
 * @throws {Error} when not even that can be written
 */
export function writeResult(document, call) {
  const { result_file: path } = call;
  try {
    write(document, path);
  } catch (error) {
    const text = `The tool's result cannot be written: ${reasonOf(error)}`;
    write(errorDocument(new Failure("RESOURCE_EXHAUSTED", text), call), path);
  }
}

/**
 * A new file. A tool that has left no descriptor free has no use for its standard input any more.
 *
 * @param {string} path
 */
function openNew(path) {
  try {
    return openSync(path, "wx", 0o644);
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code !== "EMFILE") throw error;
    closeSync(0);
    return openSync(path, "wx", 0o644);
  }
}

/**
 * @param {string} document
 * @param {string} path
 */
function write(document, path) {
  const temporary = `${path}.${pid}`;
  try {
    const descriptor = openNew(temporary);
    try {
      for (let rest = bytesOf(document); rest.length > 0;) {
        rest = rest.subarray(writeSync(descriptor, rest));
      }
    } finally {
      closeSync(descriptor);
    }
    renameSync(temporary, path);
  } catch (error) {
    try {
      unlinkSync(temporary);
    } catch {
      // There was none.
    }
    throw error;
  }
}

/**
 * What a file system's error says before the call and the path: `ENOSPC: no space left on device`.
 *
 * @param {unknown} error
 */
function reasonOf(error) {
  return /** @type {Error} */ (error).message.split(",")[0];
}

/**
 * @param {unknown} returned
 * @returns {string} JSON text of an object
 */
function resultOf(returned) {
  if (returned === undefined) return textResult("null");
  if (typeof returned === "number") return textResult(stringify(`${returned}`));
  const json = encodeReturned(returned);
  if (json.startsWith("{")) return json;
  return textResult(json === "null" || json.startsWith('"') ? json : stringify(json));
}

/** @param {string} json of the text, or null */
function textResult(json) {
  return `{"text":${json},"data_objects":[]}`;
}

/** @param {unknown} returned */
function encodeReturned(returned) {
  try {
    const json = encode(returned);
    if (json !== undefined) return json;
  } catch (error) {
    const reason = error instanceof NotJson ? error.message : describe(error);
    throw new Failure("EXECUTION_ERROR", `The tool's result is not JSON: ${reason}`);
  }
  throw new Failure("EXECUTION_ERROR", `The tool's result is not JSON: it is a ${typeof returned}`);
}

/** @param {string} path */
function dirname(path) {
  return path.slice(0, path.lastIndexOf("/"));
}

/** @param {string} text */
function parseQuietly(text) {
  try {
    return /** @type {unknown} */ (parse(text));
  } catch {
    // The parser's own words quote the text, which may hold secrets.
    throw new SyntaxError("the file is not JSON");
  }
}

/** @param {unknown} value */
function kindOf(value) {
  if (value === null) return "null";
  if (isArray(value)) return "an array";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}
