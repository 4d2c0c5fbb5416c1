/**
 * Search of tools by the words of their ids, descriptions and tags.
 */
import type MiniSearch from "minisearch";
import { abortable } from "../support/timeout.ts";
import type { Catalog } from "./catalog.ts";
import { notesOf } from "./documents.ts";
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

/** Tools that are indexed before the event loop continues. */
const indexedAtOnce = 50;

/** What is searched; words of an id count most. */
interface Searchable {
  readonly id: string;
  readonly name: string;
  readonly tags: string;
  readonly description: string;
}
const boost = { name: 3, tags: 2, description: 1 };

/** Makes its index at the first query, for all later ones. */
export class ToolSearch {
  readonly #catalog: Catalog;
  #index: Promise<MiniSearch<Searchable>> | undefined;

  constructor(catalog: Catalog) {
    this.#catalog = catalog;
  }

  /**
   * The best of the allowed tools, equal ones by id; all by id for a query without words. Throws
   * GatewayError `INVALID_REQUEST` for a query or a limit out of bounds.
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
    this.#index ??= indexOf(this.#catalog);
    const index = await abortable(this.#index, signal);
    return index
      .search(query, { filter: ({ id }) => allows(id as string) })
      .map(({ id, score }) => ({ id: id as string, score }))
      .sort((one, other) => other.score - one.score || (one.id < other.id ? -1 : 1))
      .map(({ id }) => id);
  }
}

async function indexOf(catalog: Catalog): Promise<MiniSearch<Searchable>> {
  const { default: Index } = await import("minisearch");
  const index = new Index<Searchable>({
    fields: Object.keys(boost),
    tokenize: wordsOf,
    processTerm: (word) => word.toLowerCase(),
    searchOptions: {
      boost,
      prefix: ({ length }) => length >= minPrefixLength,
      fuzzy: ({ length }) => length >= minFuzzyLength && maxEdits,
    },
  });
  const tools = Array.from(catalog.tools, (tool) => {
    const { id, tags } = tool.summary();
    return {
      id,
      name: id,
      tags: tags.join(" "),
      description: notesOf(tool.entry.description ?? ""),
    };
  });
  await index.addAllAsync(tools, { chunkSize: indexedAtOnce });
  return index;
}

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
