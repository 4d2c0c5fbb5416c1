/**
 * JSON types, and decoding of untrusted JSON with bounds for depth and number of values.
 */

/** Any JSON value. */
export type Json = string | number | boolean | null | readonly Json[] | JsonObject;

/** A JSON object. */
export interface JsonObject {
  readonly [key: string]: Json;
}

/** Bounds of a document: 30 MB of `[{},{},…]` block Node for 10 s and take 2 GB. */
export interface JsonLimits {
  /** Levels of nesting; `1` is a flat array or object. */
  readonly depth: number;
  /** Values of any kind, keys not counted. */
  readonly values: number;
}

/** Bounds for all input of the worker. */
export const defaultJsonLimits: JsonLimits = { depth: 100, values: 250_000 };

/** A refused text. `message` is public. */
export class JsonError extends Error {
  readonly reason: "syntax" | "too-deep" | "too-many-values" | "encoding";

  constructor(reason: JsonError["reason"], message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = "JsonError";
    this.reason = reason;
  }
}

/** Whether a value is a plain JSON object: not null, not an array. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * Decodes UTF-8 JSON on this thread, with Python's `NaN`, `Infinity` and `-Infinity` as null.
 * Throws JsonError for bad UTF-8, bad syntax, or a document beyond `limits`.
 */
export function parseJson(bytes: Uint8Array, limits: JsonLimits = defaultJsonLimits): Json {
  const text = decodeUtf8(bytes);
  checkBounds(text, limits);
  try {
    return JSON.parse(text) as Json;
  } catch (error) {
    const repaired = replaceNonFinite(text);
    if (repaired !== undefined) {
      try {
        return JSON.parse(repaired) as Json;
      } catch {
        // The first error has the position in the original text.
      }
    }
    // Not as cause, which is logged: the parser's error quotes the text with its secrets.
    throw new JsonError("syntax", syntaxMessage(error));
  }
}

/** The position only: V8 quotes the text around the error. */
function syntaxMessage(error: unknown): string {
  const position = error instanceof Error ? /position (\d+)/.exec(error.message)?.[1] : undefined;
  return position === undefined ? "not valid JSON" : `not valid JSON at character ${position}`;
}

const utf8 = new TextDecoder("utf-8", { fatal: true });

function decodeUtf8(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch (error) {
    throw new JsonError("encoding", "not valid UTF-8", { cause: error });
  }
}

const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const openBrace = 0x7b;
const openBracket = 0x5b;
const closeBrace = 0x7d;
const closeBracket = 0x5d;

/**
 * Checks depth and number of values before the parser allocates. Commas plus containers bound the
 * number of values from above.
 */
function checkBounds(text: string, limits: JsonLimits): void {
  let depth = 0;
  let values = 1;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit === quote) {
      i = endOfString(text, i);
    } else if (unit === openBrace || unit === openBracket) {
      depth++;
      values++;
      if (depth > limits.depth) {
        throw new JsonError("too-deep", `nested deeper than ${limits.depth} levels`);
      }
    } else if (unit === closeBrace || unit === closeBracket) {
      depth--;
    } else if (unit === comma) {
      values++;
    }
    if (values > limits.values) {
      throw new JsonError("too-many-values", `more than ${limits.values} values`);
    }
  }
}

/** Index of the closing quote of the string at `start`, or the text's length. */
function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1);
  while (end !== -1) {
    let escapes = 0;
    while (text.charCodeAt(end - 1 - escapes) === backslash) escapes++;
    if (escapes % 2 === 0) return end;
    end = text.indexOf('"', end + 1);
  }
  return text.length;
}

/**
 * The text with Python's non-finite numbers as null; undefined without any. A loop skips strings: a
 * regular expression overflows its stack, or takes quadratic time.
 */
function replaceNonFinite(text: string): string | undefined {
  if (!/NaN|Infinity/.test(text)) return undefined;
  const pieces: string[] = [];
  for (let at = 0; at < text.length;) {
    const nextQuote = text.indexOf('"', at);
    const start = nextQuote === -1 ? text.length : nextQuote;
    const end = Math.min(endOfString(text, start) + 1, text.length);
    const outside = text.slice(at, start).replace(/-?\bInfinity\b|\bNaN\b/g, "null");
    pieces.push(outside, text.slice(start, end));
    at = end;
  }
  return pieces.join("");
}
