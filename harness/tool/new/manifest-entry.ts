/**
 * Adds an entry to a manifest by inserting its text: every other byte stays as its author wrote it.
 */
import { isDeepStrictEqual } from "node:util";
import { type YAMLMap, isMap, isNode, isScalar, parseDocument, stringify } from "yaml";
import { type Manifest, ManifestError } from "../../../worker/manifest/manifest.ts";
import { parseManifest } from "../../../worker/manifest/parse.ts";
import type { Profiles } from "../../../worker/sandbox/profile.ts";
import { UsageError } from "../../context.ts";

/** An entry in the manifest's own words. */
export type ManifestEntry = Readonly<Record<string, string | number | readonly string[]>>;

const emptyManifest = `# The tools that a worker serves. A worker that runs follows every change of this file.
version: 1

tools: {}
`;

/** Blanks before the name of a first tool. */
const firstIndent = "  ";

/**
 * The text of a manifest with one more entry.
 *
 * @param path of the file; for messages
 * @param text of the file, or undefined when there is none yet
 * @param profiles that its tools may name
 * @param provided names of the tools that the entry makes; its own unless given
 * Throws UsageError when the tool is there already, or the manifest cannot be used or be added to.
 */
export function withEntry(
  path: string,
  text: string | undefined,
  tool: string,
  entry: ManifestEntry,
  profiles: Profiles,
  provided: readonly string[] = [tool],
): string {
  const before = text ?? emptyManifest;
  const { tools, unavailable } = parse(path, before, profiles);
  const taken = [tool, ...provided].find((name) => tools.has(name) || unavailable.has(name));
  if (taken !== undefined) throw new UsageError(`${path} has a tool "${taken}" already`);
  const after = insert(before, { [tool]: entry });
  if (after === undefined || !hasMore(after, tools, provided, profiles)) {
    throw new UsageError(
      `${path} is written in a way that cannot be added to; add this to its tools:\n${stringify({ [tool]: entry })}`,
    );
  }
  return after;
}

function parse(path: string, text: string, profiles: Profiles): Manifest {
  try {
    return read(path, text, profiles);
  } catch (error) {
    if (error instanceof ManifestError) throw new UsageError(error.message, { cause: error });
    throw error;
  }
}

/** Whether a text says what another said, and these tools more. */
function hasMore(
  text: string,
  before: Manifest["tools"],
  added: readonly string[],
  profiles: Profiles,
): boolean {
  try {
    const tools = new Map(read("", text, profiles).tools);
    return added.every((tool) => tools.delete(tool)) && isDeepStrictEqual(tools, before);
  } catch (error) {
    if (error instanceof ManifestError) return false;
    throw error;
  }
}

function read(path: string, text: string, profiles: Profiles): Manifest {
  const profileNames = [...profiles.keys()];
  return parseManifest(Buffer.from(text), { path, profileNames }).manifest;
}

type Entries = Readonly<Record<string, ManifestEntry>>;

/**
 * The text with entries after the last tool; undefined where that has no place of its own in the
 * text.
 */
function insert(text: string, entries: Entries): string | undefined {
  const { contents } = parseDocument(text, { merge: true });
  const tools = isMap(contents) ? contents.get("tools") : undefined;
  if (!isMap(contents) || !isMap(tools) || !tools.range) return undefined;
  const [start, end] = tools.range;
  if (tools.items.length === 0 && contents.flow !== true) {
    // Braces with nothing in them give way to lines.
    const lineEnd = endOfLine(text, end);
    const opening = `${text.slice(0, start).trimEnd()}${text.slice(end, lineEnd)}`;
    return `${opening}\n${lines(entries, firstIndent)}${text.slice(lineEnd + 1)}`;
  }
  return tools.flow === true
    ? insertInBraces(text, tools, entries)
    : insertLines(text, tools, entries);
}

/** JSON is YAML in braces. */
function insertInBraces(text: string, tools: YAMLMap, entries: Entries): string | undefined {
  const json = JSON.stringify(entries).slice(1, -1);
  const last = tools.items.at(-1);
  if (last === undefined) {
    const at = (tools.range?.[0] ?? 0) + 1;
    return `${text.slice(0, at)}${json}${text.slice(at)}`;
  }
  if (!isNode(last.value) || !last.value.range) return undefined;
  const [, at] = last.value.range;
  return `${text.slice(0, at)}, ${json}${text.slice(at)}`;
}

function insertLines(text: string, tools: YAMLMap, entries: Entries): string | undefined {
  const last = tools.items.at(-1);
  if (!isScalar(last?.key) || !last.key.range) return undefined;
  if (!isNode(last.value) || !last.value.range) return undefined;
  const [keyStart] = last.key.range;
  const indent = text.slice(text.lastIndexOf("\n", keyStart - 1) + 1, keyStart);
  if (indent.trim() !== "") return undefined;
  const at = endOfEntry(text, last.value.range[1], indent);
  const isSpaced = tools.items.length === 1 || last.key.spaceBefore === true;
  const before = text.slice(0, at);
  const newline = before.endsWith("\n") ? "" : "\n";
  return `${before}${newline}${isSpaced ? "\n" : ""}${lines(entries, indent)}${text.slice(at)}`;
}

/**
 * Where the lines of an entry end: comments that are set deeper than its name are still its own.
 */
function endOfEntry(text: string, valueEnd: number, indent: string): number {
  let end = text[valueEnd - 1] === "\n" ? valueEnd : endOfLine(text, valueEnd) + 1;
  for (let at = end; at < text.length;) {
    const next = endOfLine(text, at) + 1;
    const line = text.slice(at, next).trimEnd();
    if (line !== "" && !line.startsWith(`${indent} `)) break;
    if (line !== "") end = next;
    at = next;
  }
  return Math.min(end, text.length);
}

function endOfLine(text: string, at: number): number {
  const newline = text.indexOf("\n", at);
  return newline === -1 ? text.length : newline;
}

function lines(entries: Entries, indent: string): string {
  return stringify(entries, { lineWidth: 0 }).replaceAll(/^(?=.)/gm, indent);
}
