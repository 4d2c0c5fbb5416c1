/**
 * Takes a JSON object apart into the texts of its members, without parsing the values.
 *
 * A message's payload may be megabytes that nobody here looks at. Slicing hands it on untouched and
 * uncopied: numbers keep their digits, Python's `NaN` stays what it was, and the event loop pays
 * one pass over the bytes.
 */

/**
 * Members beyond this many make an object unreadable; the envelopes sliced here have at most five.
 */
const maxMembers = 64;

/** Bytes of a string that are read one by one before searching. */
const nearBytes = 64;

const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const colon = 0x3a;
const openBrace = 0x7b;
const closeBrace = 0x7d;
const openBracket = 0x5b;
const closeBracket = 0x5d;

/**
 * The members of the JSON object `json` by name; of members with one name the last wins, as in
 * every JSON parser. The values are views of `json`. Undefined when `json` is no object, is cut
 * off, or has too many members; whether a value is valid JSON is for those to say who parse it.
 */
export function sliceMembers(json: Uint8Array): ReadonlyMap<string, Uint8Array> | undefined {
  const members = new Map<string, Uint8Array>();
  let at = skipSpace(json, 0);
  if (json[at] !== openBrace) return undefined;
  at = skipSpace(json, at + 1);
  if (json[at] === closeBrace) return skipSpace(json, at + 1) === json.length ? members : undefined;
  for (let count = 0; count < maxMembers; count++) {
    if (json[at] !== quote) return undefined;
    const nameEnd = stringEnd(json, at);
    const name = decodeString(json.subarray(at, nameEnd));
    const start = skipSpace(json, nameEnd);
    if (name === undefined || json[start] !== colon) return undefined;
    const valueStart = skipSpace(json, start + 1);
    const end = valueEnd(json, valueStart);
    members.set(name, json.subarray(valueStart, trimSpace(json, valueStart, end)));
    if (json[end] === closeBrace) {
      return skipSpace(json, end + 1) === json.length ? members : undefined;
    }
    if (json[end] !== comma) return undefined;
    at = skipSpace(json, end + 1);
  }
  return undefined;
}

/** The string that a JSON text is; undefined when it is another value or not JSON. */
export function decodeString(json: Uint8Array | undefined): string | undefined {
  if (json?.[0] !== quote) return undefined;
  try {
    const value: unknown = JSON.parse(Buffer.from(json).toString());
    return typeof value === "string" ? value : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Index of the comma or closing brace after the value at `start`, or the length when the text is
 * cut off.
 */
function valueEnd(json: Uint8Array, start: number): number {
  const { length } = json;
  let depth = 0;
  for (let at = start; at < length; at++) {
    const byte = json[at];
    if (byte === quote) {
      at = stringEnd(json, at) - 1;
    } else if (byte === openBrace || byte === openBracket) {
      depth++;
    } else if (byte === closeBrace || byte === closeBracket) {
      if (depth === 0) return at;
      depth--;
    } else if (byte === comma && depth === 0) {
      return at;
    }
  }
  return length;
}

/**
 * Index after the quote that closes the string opened at `start`, or the length when the text is
 * cut off. The beginning is read byte by byte, which is fast for short strings and for strings full
 * of escapes; a long run without escapes is skipped by searching for the next quote.
 */
function stringEnd(json: Uint8Array, start: number): number {
  let at = start + 1;
  for (;;) {
    const near = Math.min(at + nearBytes, json.length);
    while (at < near) {
      const byte = json[at];
      if (byte === quote) return at + 1;
      at += byte === backslash ? 2 : 1;
    }
    const next = at < json.length ? json.indexOf(quote, at) : -1;
    if (next === -1) return json.length;
    let run = next;
    while (run > at && json[run - 1] === backslash) run--;
    if ((next - run) % 2 === 0) return next + 1;
    at = next + 1;
  }
}

function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x09 || byte === 0x0a || byte === 0x0d;
}

function skipSpace(json: Uint8Array, from: number): number {
  let at = from;
  while (isSpace(json[at])) at++;
  return at;
}

function trimSpace(json: Uint8Array, start: number, end: number): number {
  let at = end;
  while (at > start && isSpace(json[at - 1])) at--;
  return at;
}
