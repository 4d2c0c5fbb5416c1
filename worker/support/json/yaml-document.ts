/**
 * YAML text as a plain value of which every part can still be found in the text.
 */
import { isUtf8 } from "node:buffer";
import { isAlias, isMap, isNode, isScalar, isSeq, LineCounter, parseDocument, visit } from "yaml";
import type { Document, Pair, YAMLMap } from "yaml";

/** A position in the text, both 1-based. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

/** What is to be said about a place. */
export interface Finding extends Position {
  readonly message: string;
}

/** Keys and indices that lead from the top of the document to a value. */
export type Path = readonly PropertyKey[];

/** A document that could be read. */
export interface SourceDocument {
  /** Plain maps, lists and scalars: `null` for an empty document. Unchecked. */
  readonly value: unknown;
  /** What the reader ignored, such as an unknown tag. */
  readonly warnings: readonly Finding[];
  /**
   * Where the value at `path` is written, or its key if asked for, or if the value is a map, a list
   * or empty. What is not written at all (absent, or merged in) is at the nearest key above it.
   */
  positionOf(path: Path, part?: "key" | "value"): Position;
}

/** Whether a value of a document is a map. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A document, or everything that keeps it from being one. */
export type Reading =
  | { readonly ok: true; readonly document: SourceDocument }
  | { readonly ok: false; readonly findings: readonly Finding[] };

/** Uses of one anchor, times those inside it. Beyond it a small file unfolds into gigabytes. */
const maxAliasCount = 1000;

/** The reader's own words name its programming interface or tell too little. */
const messages: Readonly<Record<string, string>> = {
  MULTIPLE_DOCS: "expected one YAML document, found the start of another",
  NON_STRING_KEY: "expected a plain text key",
  RESOURCE_EXHAUSTION: "nested too deeply",
};

/**
 * Reads one YAML 1.2 document in UTF-8, with `<<` merge keys as PyYAML understands them.
 *
 * Keys are text as written (`1.50` stays "1.50"); a key may occur once per map. Total: what cannot
 * be read is told.
 */
export function readDocument(bytes: Uint8Array): Reading {
  if (!isUtf8(bytes)) return unreadable([{ ...firstBadLine(bytes), message: "not valid UTF-8" }]);
  try {
    return readText(new TextDecoder().decode(bytes));
  } catch (error) {
    // The reader throws plain errors of several classes: too many aliases, `<<` with something else
    // than a map.
    const message = error instanceof Error ? error.message : String(error);
    return unreadable([{ line: 1, column: 1, message }]);
  }
}

function readText(text: string): Reading {
  const lines = new LineCounter();
  const position = (offset: number): Position => {
    const { line, col } = lines.linePos(offset);
    return { line: Math.max(line, 1), column: Math.max(col, 1) };
  };
  const document = parseDocument(text, {
    version: "1.2",
    merge: true,
    stringKeys: true,
    // The reader compares every pair of keys, minutes for a large file of the wrong kind; below it
    // is a lookup.
    uniqueKeys: false,
    prettyErrors: false,
    lineCounter: lines,
  });
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
  return { ok: true, document: { value, warnings, positionOf } };
}

function unreadable(findings: readonly Finding[]): Reading {
  return { ok: false, findings };
}

/** No byte of a multi-byte character is a line feed, so lines can be checked one by one. */
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

/** An unquoted `>=1.0` is the mistake that a version constraint invites. */
function withHint(message: string): string {
  if (!message.startsWith("Block scalar header")) return message;
  return `${message} (text that starts with > or | needs quotes)`;
}

/**
 * The pairs of every map by key: problems are placed one by one, and a file may have thousands of
 * keys.
 */
type KeyIndex = Map<YAMLMap, Map<unknown, Pair>>;

/**
 * Fills `index` and tells of keys that occur twice in a map and of aliases whose anchor was not set
 * before.
 */
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
    } else {
      return keyOffset;
    }
  }
  if (part === "key" || !isScalar(node) || !node.range) return keyOffset;
  const [start, end] = node.range;
  return start === end ? keyOffset : start;
}

function keyOf(pair: Pair): unknown {
  return isScalar(pair.key) ? pair.key.value : undefined;
}

function offsetOfKey(pair: Pair): number {
  return (isNode(pair.key) ? pair.key.range?.[0] : undefined) ?? 0;
}
