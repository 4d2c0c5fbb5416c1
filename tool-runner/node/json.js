/**
 * A tool's values as JSON: what `JSON.stringify` does, where that does not lose them without a
 * word.
 */

const { stringify } = JSON;
const { keys } = Object;
const { isArray } = Array;
const { isFinite } = Number;
const { isView } = ArrayBuffer;

/**
 * Levels of nesting of a value. The worker reads documents of 100, and the document around a result
 * is one.
 */
const resultMaxDepth = 99;
/** Around the outermost value. */
const nothing = {};

/** A value that JSON cannot express. The text names its place and may be published. */
export class NotJson extends Error {
  #complaint;
  #path;

  /**
   * @param {string} complaint
   * @param {readonly string[]} path keys that lead to the value, the outermost first
   */
  constructor(complaint, path = []) {
    super(`${path.length === 0 ? "it" : path.join(".")} ${complaint}`);
    this.#complaint = complaint;
    this.#path = path;
  }

  /**
   * The same, seen from the value around.
   *
   * @param {string} key
   */
  within(key) {
    return new NotJson(this.#complaint, [key, ...this.#path]);
  }
}

/**
 * A value as JSON text; undefined for what JSON leaves out: undefined, functions, symbols.
 *
 * As `JSON.stringify`, but a Map is an object, a Set is an array, and a bigint and an error are
 * their text.
 *
 * @param {unknown} value
 * @param {number} [maxDepth] levels of nesting
 * @returns {string | undefined}
 * @throws {NotJson} for bytes, promises, iterators, streams, and for what is circular or nested too
 *   deeply
 * @throws {unknown} what a getter or a toJSON of the value throws
 */
export function encode(value, maxDepth = resultMaxDepth) {
  return textOf(value, "", { value: nothing, depth: 0, maxDepth, outer: undefined });
}

/**
 * The values around the present one, from the inside out.
 *
 * @typedef {{ value: object, depth: number, maxDepth: number, outer: Level | undefined }} Level
 */

/**
 * @param {unknown} value
 * @param {string} key
 * @param {Level} outer
 * @returns {string | undefined}
 */
function textOf(value, key, outer) {
  if (typeof value !== "object" || value === null) return primitive(value);
  // Before toJSON: a Buffer has one.
  if (isView(value) || value instanceof ArrayBuffer || value instanceof SharedArrayBuffer) {
    throw new NotJson(`is bytes (${className(value)}); save them as an artifact`);
  }
  const said = has(value, "toJSON") ? /** @type {Date} */ (value).toJSON(key) : value;
  if (typeof said !== "object" || said === null) return primitive(said);
  if (said instanceof String || said instanceof Number || said instanceof Boolean) {
    return primitive(said.valueOf());
  }
  if (said instanceof Error && said === value) return stringify(`${said}`);
  return compound(said, outer);
}

/**
 * @param {object} value
 * @param {Level} outer
 */
function compound(value, outer) {
  for (
    let level = /** @type {Level | undefined} */ (outer);
    level !== undefined;
    level = level.outer
  ) {
    if (level.value === value) throw new NotJson("is circular");
  }
  const { maxDepth } = outer;
  const depth = outer.depth + 1;
  if (depth > maxDepth) throw new NotJson(`is nested more than ${maxDepth} levels deep`);
  const level = { value, depth, maxDepth, outer };

  if (isArray(value) || value instanceof Set) return list(value, level);
  if (value instanceof Map) return membersOfMap(value, level);
  if (has(value, "then")) throw new NotJson("is a promise; await it");
  if (has(value, Symbol.iterator) || has(value, Symbol.asyncIterator)) {
    throw new NotJson(`is an iterator or a stream (${className(value)}); read it into an array`);
  }
  return members(value, level);
}

/**
 * @param {Iterable<unknown>} values
 * @param {Level} level
 */
function list(values, level) {
  let text = "";
  let index = 0;
  for (const value of values) {
    text += `${index === 0 ? "" : ","}${inner(value, `${index}`, level) ?? "null"}`;
    index += 1;
  }
  return `[${text}]`;
}

/**
 * @param {object} value
 * @param {Level} level
 */
function members(value, level) {
  let text = "";
  for (const key of keys(value)) {
    text += member(text, key, /** @type {Record<string, unknown>} */ (value)[key], level);
  }
  return `{${text}}`;
}

/**
 * @param {Map<unknown, unknown>} map
 * @param {Level} level
 */
function membersOfMap(map, level) {
  let text = "";
  for (const [key, value] of map) {
    if (typeof key === "symbol" || (typeof key === "object" && key !== null)) {
      throw new NotJson(`is a Map with a key that is no text but ${className(key)}`);
    }
    text += member(text, `${key}`, value, level);
  }
  return `{${text}}`;
}

/**
 * @param {string} before the members before this one
 * @param {string} key
 * @param {unknown} value
 * @param {Level} level
 */
function member(before, key, value, level) {
  const content = inner(value, key, level);
  if (content === undefined) return "";
  return `${before === "" ? "" : ","}${stringify(key)}:${content}`;
}

/**
 * @param {unknown} value
 * @param {string} key
 * @param {Level} level
 */
function inner(value, key, level) {
  try {
    return textOf(value, key, level);
  } catch (error) {
    throw error instanceof NotJson ? error.within(key) : error;
  }
}

/** @param {unknown} value */
function primitive(value) {
  switch (typeof value) {
    case "string":
      return stringify(value);
    case "number":
      return isFinite(value) ? `${value}` : "null";
    case "boolean":
      return `${value}`;
    case "bigint":
      return `"${value}"`;
    default:
      return value === null ? "null" : undefined;
  }
}

/**
 * Whether an object has a method of the name, its own or inherited.
 *
 * @param {object} value
 * @param {string | symbol} name
 */
function has(value, name) {
  return typeof (/** @type {Record<string | symbol, unknown>} */ (value)[name]) === "function";
}

/** @param {object | symbol} value */
function className(value) {
  return value.constructor?.name || "Object";
}
