/**
 * The tools that a gateway knows, with their documents.
 */
import type { JsonObject } from "../support/json/json.ts";
import { examplesOf, notesOf, schemaOf, summaryOf, tagsOf } from "./documents.ts";
import type { DetailLevel, ToolDoc, ToolSummary } from "./gateway.ts";
import type { ToolExample } from "../protocol/tool-calls/example.ts";
import { copyJson } from "./copies.ts";
import { type ToolId, parseToolId, shownId } from "../protocol/tool-calls/tool-id.ts";

/** Tools of a catalog. */
export const maxTools = 5_000;

/** A tool, in words and schemas that need not be trusted. */
export interface CatalogEntry {
  readonly id: string;
  /** The summary is its first paragraph. */
  readonly description?: string | undefined;
  readonly tags?: readonly string[] | undefined;
  /** JSON Schemas of the arguments and of the structured result. */
  readonly parameters?: JsonObject | undefined;
  readonly returns?: JsonObject | undefined;
  /** The description by default. */
  readonly notes?: string | undefined;
  readonly examples?: readonly ToolExample[] | undefined;
}

/** A tool of a catalog. */
export class CatalogTool {
  /** As it came. */
  readonly entry: CatalogEntry;
  readonly #summary: ToolSummary;

  constructor(entry: CatalogEntry, { namespace, name }: ToolId) {
    this.entry = entry;
    const shortDescription = summaryOf(entry.description ?? "");
    this.#summary = {
      ...{ id: entry.id, name, namespace, shortDescription, tags: tagsOf(entry.tags ?? []) },
    };
  }

  /** A copy, as those of all methods. */
  summary(): ToolSummary {
    return { ...this.#summary, tags: [...this.#summary.tags] };
  }

  document(level: DetailLevel): ToolDoc {
    const { id, name, namespace, shortDescription: summary } = this.#summary;
    return {
      ...{ id, name, namespace, summary },
      ...(level !== "summary" && schemasOf(this.entry)),
      ...(level === "full" && { notes: this.notes(), examples: this.examples() }),
    };
  }

  /** Its notes, which are its description by default. */
  notes(): string {
    return notesOf(this.entry.notes ?? this.entry.description ?? "");
  }

  examples(): readonly ToolExample[] {
    return examplesOf(this.entry.examples ?? []).map((example) => ({
      ...example,
      args: copyJson(example.args).value,
    }));
  }
}

/** Tools by id; never changes. */
export class Catalog {
  readonly #tools: ReadonlyMap<string, CatalogTool>;

  /** Throws TypeError for a wrong id, an id twice, or more than `maxTools` tools. */
  constructor(entries: Iterable<CatalogEntry>) {
    const tools = new Map<string, CatalogTool>();
    for (const entry of entries) {
      const parts = parseToolId(entry.id);
      if (parts === undefined) throw new TypeError(`${shownId(entry.id)} is no id of a tool`);
      if (tools.has(entry.id)) throw new TypeError(`The tool ${entry.id} is there twice`);
      if (tools.size === maxTools) throw new TypeError(`A catalog has at most ${maxTools} tools`);
      tools.set(entry.id, new CatalogTool(entry, parts));
    }
    this.#tools = new Map([...tools].sort(([one], [other]) => (one < other ? -1 : 1)));
  }

  /** The ids, sorted. */
  get ids(): readonly string[] {
    return [...this.#tools.keys()];
  }

  get tools(): Iterable<CatalogTool> {
    return this.#tools.values();
  }

  get(id: string): CatalogTool | undefined {
    return this.#tools.get(id);
  }
}

function schemasOf({ parameters, returns }: CatalogEntry): Pick<ToolDoc, "parameters" | "returns"> {
  const [shownParameters, shownReturns] = [parameters, returns].map(
    (schema) => schema && schemaOf(schema),
  );
  return {
    ...(shownParameters && { parameters: shownParameters }),
    ...(shownReturns && { returns: shownReturns }),
  };
}
