/**
 * Statuses with details: the text that every agent reads, and the same as data. See status.pipe in
 * tool-runner/PROTOCOL.md.
 */

const { isFinite } = Number;
const { parse, stringify } = JSON;
const { entries, fromEntries } = Object;

/** Characters of a partial result that its text quotes. */
const quotedCharacters = 100;

/** @import { LogLevel, Progress, StatusDetails } from "./tool.js" */

/**
 * @typedef {object} Status
 * @property {string} text
 * @property {StatusDetails} [details]
 */

/** @type {readonly LogLevel[]} */
const levels = ["debug", "info", "warning", "error"];

/**
 * @param {Progress} progress
 * @returns {Status}
 * @throws {RangeError}
 */
export function progressStatus({ done, total, message }) {
  const count = [done, total ?? []].flat();
  if (!count.every((amount) => isFinite(amount) && amount >= 0)) {
    throw new RangeError("progress is counted in finite numbers from 0");
  }
  const counted = count.join(" of ");
  /** @type {Progress} */
  const progress = {
    done,
    ...(total === undefined || total === null ? {} : { total }),
    ...(message === undefined || message === null ? {} : { message: `${message}` }),
  };
  const text = progress.message === undefined ? counted : `${message} (${counted})`;
  return { text, details: { progress } };
}

/**
 * @param {string} level
 * @param {string} text
 * @param {Readonly<Record<string, unknown>>} fields
 * @returns {Status}
 */
export function logStatus(level, text, fields) {
  const known = levels.find((each) => each === level) ?? (level === "warn" ? "warning" : "info");
  const scalars = entries(fields).map(
    ([name, value]) => /** @type {const} */ ([name, scalar(value)]),
  );
  const shown = scalars.map(([name, value]) => `${name}=${value}`).join(", ");
  const line = scalars.length === 0 ? `${text}` : `${text} (${shown})`;
  const prefix = known === "info" ? "" : `${known[0]?.toUpperCase()}${known.slice(1)}: `;
  const withFields = scalars.length === 0 ? {} : { fields: fromEntries(scalars) };
  return {
    text: `${prefix}${line}`,
    details: { log: { level: known, text: `${text}`, ...withFields } },
  };
}

/**
 * @param {unknown} value
 * @returns {Status}
 * @throws {TypeError} for what JSON cannot express, and for null
 */
export function partialStatus(value) {
  const json = stringify(value);
  if (json === undefined || json === "null") throw new TypeError("no partial result");
  const cut = json.length > quotedCharacters ? "…" : "";
  return {
    text: `Partial result: ${json.slice(0, quotedCharacters)}${cut}`,
    details: { partialResult: parse(json) },
  };
}

/** @param {unknown} value */
function scalar(value) {
  if (value === null || typeof value === "boolean" || isFinite(value)) {
    return /** @type {null | boolean | number} */ (value);
  }
  return `${value}`;
}
