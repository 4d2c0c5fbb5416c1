/**
 * Search of tools by the words of their ids, descriptions and tags.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { default as MiniSearch, Options } from "minisearch";
import { abortable } from "../support/timeout.ts";
import type { Catalog, CatalogTool } from "./catalog.ts";
import { maxNotesLength, notesOf } from "./documents.ts";
import { type ToolSummary, invalid } from "./gateway.ts";

/** Tools of one answer. */
export const maxResults = 50;
/** Characters and words of a query: longer ones would block the event loop. */
export const maxQueryLength = 256;
export const maxQueryWords = 8;

/** Characters of a word that are looked at. */
const maxWordLength = 64;
/** Characters from which on a word may be the beginning of another, or have a misspelt letter. */
const minPrefixLength = 3;
const minFuzzyLength = 5;
const maxEdits = 1;

/**
 * Tools of one index, and characters of their texts. The event loop continues between indexes: a
 * query whose words begin words of every tool takes some 10 ms of one.
 */
export const indexBounds = { tools: 128, characters: 32_768 };
/** Characters that are indexed before the event loop continues. */
const indexedAtOnce = 4_096;

/** What is searched; words of an id count most. */
interface Searchable {
  readonly id: string;
  readonly name: string;
  readonly tags: string;
  readonly description: string;
}
const boost = { name: 3, tags: 2, description: 1 };

type Index = MiniSearch<Searchable>;

/** Makes its indexes at the first query, for all later ones. */
export class ToolSearch {
  readonly #catalog: Catalog;
  #indexes: Promise<readonly Index[]> | undefined;

  constructor(catalog: Catalog) {
    this.#catalog = catalog;
  }

  /**
   * The best of the allowed tools, equal ones of one index by id; all by id for a query without
   * words. The order is the same for the same tools. Throws GatewayError `INVALID_REQUEST` for a
   * query or a limit out of bounds.
   */
  async search(
    query: string,
    limit: number,
    allows: (id: string) => boolean,
    signal: AbortSignal,
  ): Promise<readonly ToolSummary[]> {
    signal.throwIfAborted();
    const most = checkLimit(limit);
    const ids = isWithoutWords(query)
      ? this.#catalog.ids.filter(allows)
      : await this.#best(query, allows, signal);
    return ids.slice(0, most).flatMap((id) => this.#catalog.get(id)?.summary() ?? []);
  }

  async #best(
    query: string,
    allows: (id: string) => boolean,
    signal: AbortSignal,
  ): Promise<readonly string[]> {
    this.#indexes ??= indexesOf(this.#catalog);
    const found: { readonly id: string; readonly score: number }[] = [];
    for (const index of await abortable(this.#indexes, signal)) {
      await nextTurn();
      signal.throwIfAborted();
      const results = index.search(query, { filter: ({ id }) => allows(id as string) });
      found.push(...results.map(({ id, score }) => ({ id: id as string, score })));
    }
    return found
      .sort((one, other) => other.score - one.score || (one.id < other.id ? -1 : 1))
      .map(({ id }) => id);
  }
}

/** Neighbours are in different ones, so that a word is about as frequent in each. */
async function indexesOf(catalog: Catalog): Promise<readonly Index[]> {
  const { default: MiniSearch } = await import("minisearch");
  const tools = catalog.ids.flatMap((id) => catalog.get(id) ?? []);
  const characters = tools.reduce((sum, tool) => sum + lengthOf(tool), 0);
  const { tools: maxTools, characters: maxCharacters } = indexBounds;
  const count = Math.ceil(Math.max(tools.length / maxTools, characters / maxCharacters));
  const indexes = Array.from({ length: count }, () => new MiniSearch(options));
  let indexed = 0;
  for (const [position, tool] of tools.entries()) {
    indexes[position % count]?.add(searchableOf(tool));
    indexed += lengthOf(tool);
    if (indexed < indexedAtOnce) continue;
    indexed = 0;
    await nextTurn();
  }
  return indexes;
}

function searchableOf(tool: CatalogTool): Searchable {
  const { id, tags } = tool.summary();
  const description = notesOf(tool.entry.description ?? "");
  return { id, name: id, tags: tags.join(" "), description };
}

/** About as many characters as are indexed of it. */
function lengthOf({ entry: { id, tags = [], description = "" } }: CatalogTool): number {
  return id.length + tags.join(" ").length + Math.min(description.length, maxNotesLength);
}

const options: Options<Searchable> = {
  fields: Object.keys(boost),
  tokenize: wordsOf,
  processTerm: (word) => word.toLowerCase(),
  searchOptions: {
    boost,
    prefix: ({ length }) => length >= minPrefixLength,
    fuzzy: ({ length }) => length >= minFuzzyLength && maxEdits,
  },
};

/** The parts of names are words: `listFiles` and `list_files` have two. */
function wordsOf(text: string): string[] {
  return text
    .replaceAll(/(\p{Ll}|\d)(\p{Lu})/gu, "$1 $2")
    .split(/[^\p{L}\p{M}\p{N}]+/u)
    .filter((word) => word !== "")
    .map((word) => word.slice(0, maxWordLength));
}

/** Throws for a query that is too long. */
function isWithoutWords(query: string): boolean {
  if (query.length > maxQueryLength) {
    throw invalid(`A query has at most ${maxQueryLength} characters; this one has ${query.length}`);
  }
  const { length } = wordsOf(query);
  if (length > maxQueryWords) {
    throw invalid(`A query has at most ${maxQueryWords} words; this one has ${length}`);
  }
  return length === 0;
}

function checkLimit(limit: number): number {
  if (Number.isInteger(limit) && limit >= 0) return Math.min(limit, maxResults);
  throw invalid("The limit of a search is a whole number from 0 on");
}
