/**
 * Documents of tools for programs, derived from text that nobody vouches for: cleaned, and cut to
 * the caps.
 */
import { sizeProblem } from "../protocol/discovery/schema-problems.ts";
import { type Json, type JsonObject, isJsonObject } from "../support/json/json.ts";
import { withoutDeceptive } from "../support/text/deceptive.ts";
import type { ToolExample } from "../protocol/tool-calls/example.ts";

/** Characters of the texts of a document. */
export const maxSummaryLength = 200;
export const maxNotesLength = 2_000;
export const maxExampleLength = 300;
export const maxHintLength = 200;
const maxTitleLength = 100;
const maxTagLength = 64;

/** Tags of a tool, and examples. */
export const maxTags = 20;
export const maxExamples = 20;

/** Bounds of an example's arguments. */
export const maxExampleDepth = 5;
export const maxExampleKeys = 50;

/** Characters that are looked at for each that is kept: spaces may go. */
const readPerKept = 4;

/** The first paragraph of a description, on one line. */
export function summaryOf(description: string): string {
  const [paragraph = ""] = description.trimStart().split(/\n\s*\n/, 1);
  return oneLine(paragraph, maxSummaryLength);
}

/** A text that may have lines. */
export function notesOf(text: string): string {
  const lines = text.slice(0, readPerKept * maxNotesLength).split(/\r?\n/);
  return cut(lines.map((line) => clean(line).trimEnd()).join("\n"), maxNotesLength);
}

/** Tags without empty and repeated ones. */
export function tagsOf(tags: readonly string[]): readonly string[] {
  const clean = tags.slice(0, maxTags).map((tag) => oneLine(tag, maxTagLength));
  return [...new Set(clean)].filter((tag) => tag !== "");
}

/** The examples with arguments within the bounds; the others are left out. */
export function examplesOf(examples: readonly ToolExample[]): readonly ToolExample[] {
  return examples
    .filter(({ args }) => isWithin(args))
    .slice(0, maxExamples)
    .map(({ title, description, args, resultHint }) => ({
      ...(title !== undefined && { title: oneLine(title, maxTitleLength) }),
      description: oneLine(description, maxExampleLength),
      args,
      ...(resultHint !== undefined && { resultHint: oneLine(resultHint, maxHintLength) }),
    }));
}

/** A schema with clean notes; undefined for one that is too large to be shown. */
export function schemaOf(schema: JsonObject): JsonObject | undefined {
  return sizeProblem(schema) === undefined ? (withCleanNotes(schema) as JsonObject) : undefined;
}

/** Keywords whose text is for readers: in other places it decides what is valid. */
const noteKeywords: ReadonlySet<string> = new Set(["title", "description", "$comment"]);

function withCleanNotes(value: Json, key = ""): Json {
  if (typeof value === "string") return noteKeywords.has(key) ? notesOf(value) : value;
  if (Array.isArray(value)) return value.map((each: Json) => withCleanNotes(each));
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [name, withCleanNotes(each, name)]),
  );
}

function isWithin(args: JsonObject): boolean {
  let keys = 0;
  const fits = (value: Json, depth: number): boolean => {
    if (typeof value !== "object" || value === null) return true;
    if (depth > maxExampleDepth) return false;
    keys += Object.keys(value).length;
    return keys <= maxExampleKeys && Object.values(value).every((each) => fits(each, depth + 1));
  };
  return fits(args, 1);
}

function oneLine(text: string, maxLength: number): string {
  const read = text.slice(0, readPerKept * maxLength);
  return cut(clean(read).replaceAll(/\s+/g, " ").trim(), maxLength);
}

function clean(text: string): string {
  return withoutDeceptive(text.toWellFormed());
}

/** Ends a text that is too long by an ellipsis, and between characters. */
export function cut(text: string, maxLength: number): string {
  if (text.length <= maxLength) return text;
  const kept = text.slice(0, maxLength - 1);
  return `${/[\ud800-\udbff]$/.test(kept) ? kept.slice(0, -1) : kept}…`;
}
