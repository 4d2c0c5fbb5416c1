/**
 * Parses YAML to a plain value with the positions of its parts.
 */
import { isUtf8 } from "node:buffer";
import {
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  Lexer,
  LineCounter,
  parseDocument,
  visit,
} from "yaml";
import type { Document, Pair, YAMLMap } from "yaml";

/** A position in the text, both 1-based. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

/** A message with its position. */
export interface Finding extends Position {
  readonly message: string;
}

/** Keys and indices from the top of the document to a value. */
export type Path = readonly PropertyKey[];

/** A parsed document. */
export interface SourceDocument {
  /** Plain maps, lists and scalars: `null` for an empty document. Unchecked. */
  readonly value: unknown;
  /** Ignored parts, such as an unknown tag. */
  readonly warnings: readonly Finding[];
  /**
   * Position of the value at `path`, or of its key for maps, lists and empty values. A value of a
   * list is its own key. Absent and merged values have the position of the nearest key above.
   */
  positionOf(path: Path, part?: "key" | "value"): Position;
  /** Text of the scalar at `path` as written: the number `3.10` is "3.10". Not of merged ones. */
  sourceOf(path: Path): string | undefined;
}

/** Whether a value of a document is a map. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A document, or all of its errors. */
export type Reading =
  | { readonly ok: true; readonly document: SourceDocument }
  | { readonly ok: false; readonly findings: readonly Finding[] };

/** Bound for the uses of an anchor, with nested ones: a small file could unfold to gigabytes. */
const maxAliasCount = 1000;

/** Bound for flow collections within each other: the parser's time grows with their square. */
const maxFlowDepth = 64;

const tooDeeply = "nested too deeply";

/** Messages that replace the parser's, which name its programming interface or say too little. */
const messages: Readonly<Record<string, string>> = {
  MULTIPLE_DOCS: "expected one YAML document, found the start of another",
  NON_STRING_KEY: "expected a plain text key",
  RESOURCE_EXHAUSTION: tooDeeply,
};

/**
 * Parses one YAML 1.2 document in UTF-8, with PyYAML's `<<` merge keys. Keys are text as written
 * (`1.50` stays "1.50") and unique in a map. Returns all errors, and throws none.
 */
export function readDocument(bytes: Uint8Array): Reading {
  if (!isUtf8(bytes)) return unreadable([{ ...firstBadLine(bytes), message: "not valid UTF-8" }]);
  try {
    return readText(new TextDecoder().decode(bytes));
  } catch (error) {
    // The parser throws plain errors, such as for too many aliases or a `<<` without a map.
    const message = error instanceof Error ? error.message : String(error);
    return unreadable([{ line: 1, column: 1, message }]);
  }
}

function readText(text: string): Reading {
  const tooDeep = flowTooDeep(text);
  if (tooDeep !== undefined) return unreadable([tooDeep]);
  const lines = new LineCounter();
  const position = (offset: number): Position => {
    const { line, col } = lines.linePos(offset);
    return { line: Math.max(line, 1), column: Math.max(col, 1) };
  };
  const document = withoutStacks(() =>
    parseDocument(text, {
      version: "1.2",
      merge: true,
      stringKeys: true,
      // The parser compares each pair of keys, minutes for a large file; `indexKeys` looks them up.
      uniqueKeys: false,
      prettyErrors: false,
      lineCounter: lines,
    }),
  );
  const errors = document.errors.map(({ code, message, pos }) => ({
    ...position(pos[0]),
    message: messages[code] ?? withHint(message),
  }));
  if (errors.length > 0) return unreadable(errors);
  const index: KeyIndex = new Map();
  const misuses = indexKeys(document, index, position);
  if (misuses.length > 0) return unreadable(misuses);
  const value: unknown = document.toJS({ maxAliasCount });
  const warnings = document.warnings.map(({ message, pos }) => ({ ...position(pos[0]), message }));
  const positionOf: SourceDocument["positionOf"] = (path, part = "value") =>
    position(offsetOf(document, index, path, part));
  const sourceOf = (path: Path): string | undefined => {
    const node = path.reduce<unknown>((at, step) => childOf(at, step, index), document.contents);
    return isScalar(node) ? node.source : undefined;
  };
  return { ok: true, document: { value, warnings, positionOf, sourceOf } };
}

/** A linear look at the tokens, for a text with so many brackets that they may be too deep. */
function flowTooDeep(text: string): Finding | undefined {
  if ((text.match(/[[{]/g)?.length ?? 0) <= maxFlowDepth) return undefined;
  let depth = 0;
  let offset = 0;
  for (const token of new Lexer().lex(text)) {
    if (token === "[" || token === "{") depth++;
    else if (token === "]" || token === "}") depth = Math.max(0, depth - 1);
    if (depth > maxFlowDepth) {
      const before = text.slice(0, offset);
      const line = before.split("\n").length;
      const column = offset - before.lastIndexOf("\n");
      return { line, column, message: tooDeeply };
    }
    // The lexer's own marks of a document, of a scalar and of an end.
    if (!/^[\x02\x18\x1f]$/.test(token)) offset += token.length;
  }
  return undefined;
}

/** The parser makes an error of each problem: ten thousands of stacks would take a second. */
function withoutStacks<T>(parse: () => T): T {
  const { stackTraceLimit } = Error;
  try {
    Error.stackTraceLimit = 0;
    return parse();
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

function unreadable(findings: readonly Finding[]): Reading {
  return { ok: false, findings };
}

/** Position of the first line with bad UTF-8; no multi-byte character contains a line feed. */
function firstBadLine(bytes: Uint8Array): Position {
  let line = 1;
  let start = 0;
  for (let end = bytes.indexOf(0x0a); end !== -1; end = bytes.indexOf(0x0a, start)) {
    if (!isUtf8(bytes.subarray(start, end))) break;
    start = end + 1;
    line++;
  }
  return { line, column: 1 };
}

/** Explains an unquoted `>=1.0`, a likely mistake in version constraints. */
function withHint(message: string): string {
  if (!message.startsWith("Block scalar header")) return message;
  return `${message} (text that starts with > or | needs quotes)`;
}

/** The pairs of each map by key, for files with thousands of keys. */
type KeyIndex = Map<YAMLMap, Map<unknown, Pair>>;

/** Fills `index`, and finds duplicate keys and aliases without an earlier anchor. */
function indexKeys(
  document: Document,
  index: KeyIndex,
  position: (offset: number) => Position,
): Finding[] {
  const findings: Finding[] = [];
  const anchors = new Set<string>();
  visit(document, (_key, node) => {
    if (isAlias(node)) {
      if (anchors.has(node.source)) return;
      const message = `alias *${node.source} has no anchor &${node.source} before it`;
      findings.push({ ...position(node.range?.[0] ?? 0), message });
    } else if (isNode(node) && node.anchor !== undefined) {
      anchors.add(node.anchor);
    }
    if (isMap(node)) {
      const pairs = new Map<unknown, Pair>();
      index.set(node, pairs);
      for (const pair of node.items) {
        const key = keyOf(pair);
        const first = pairs.get(key);
        if (first === undefined) {
          pairs.set(key, pair);
        } else {
          const { line } = position(offsetOfKey(first));
          const message = `key ${JSON.stringify(key)} is already in line ${line}`;
          findings.push({ ...position(offsetOfKey(pair)), message });
        }
      }
    }
  });
  return findings;
}

function offsetOf(document: Document, index: KeyIndex, path: Path, part: "key" | "value"): number {
  let node: unknown = document.contents;
  let keyOffset = 0;
  for (const step of path) {
    if (isMap(node)) {
      const pair = index.get(node)?.get(step);
      if (pair === undefined) return keyOffset;
      keyOffset = offsetOfKey(pair);
      node = pair.value;
    } else if (isSeq(node) && typeof step === "number") {
      node = node.items[step];
      keyOffset = (isNode(node) ? node.range?.[0] : undefined) ?? keyOffset;
    } else {
      return keyOffset;
    }
  }
  if (part === "key" || !isScalar(node) || !node.range) return keyOffset;
  const [start, end] = node.range;
  return start === end ? keyOffset : start;
}

function childOf(parent: unknown, step: PropertyKey, index: KeyIndex): unknown {
  if (isMap(parent)) return index.get(parent)?.get(step)?.value;
  return isSeq(parent) && typeof step === "number" ? parent.items[step] : undefined;
}

function keyOf(pair: Pair): unknown {
  return isScalar(pair.key) ? pair.key.value : undefined;
}

function offsetOfKey(pair: Pair): number {
  return (isNode(pair.key) ? pair.key.range?.[0] : undefined) ?? 0;
}
