/**
 * The tools of the manifest that other tools may call, with their descriptions.
 */
import type { Described } from "../discovery/described-tools.ts";
import { Catalog, type CatalogEntry } from "../gateway/catalog.ts";
import { ToolSearch } from "../gateway/search.ts";
import { type ToolEntry, toolIdOf } from "../manifest/manifest.ts";

/** Dependencies of {@link CallableTools}. */
export interface CallableToolsParts {
  /** The served tools; another map after each change. */
  readonly tools: () => ReadonlyMap<string, ToolEntry>;
  /** What is known of their descriptions. */
  readonly described: () => readonly Pick<Described, "tool" | "description">[];
}

/** What is served at one time. */
export interface CallableSnapshot {
  readonly catalog: Catalog;
  readonly search: ToolSearch;
  /** The manifest's names, by id. */
  readonly names: ReadonlyMap<string, string>;
}

/** Builds the catalog when a gateway needs it and something has changed. */
export class CallableTools {
  readonly #parts: CallableToolsParts;
  #tools: ReadonlyMap<string, ToolEntry> | undefined;
  #descriptions: ReadonlyMap<string, Described["description"]> = new Map();
  #snapshot: CallableSnapshot | undefined;

  constructor(parts: CallableToolsParts) {
    this.#parts = parts;
  }

  snapshot(): CallableSnapshot {
    const tools = this.#parts.tools();
    const descriptions = new Map(
      this.#parts.described().map(({ tool, description }) => [tool.name, description]),
    );
    if (this.#snapshot && tools === this.#tools && isSame(descriptions, this.#descriptions))
      return this.#snapshot;
    [this.#tools, this.#descriptions] = [tools, descriptions];
    this.#snapshot = snapshotOf(tools, descriptions);
    return this.#snapshot;
  }
}

function isSame<Value>(one: ReadonlyMap<string, Value>, other: ReadonlyMap<string, Value>) {
  return one.size === other.size && [...one].every(([key, value]) => other.get(key) === value);
}

function snapshotOf(
  tools: ReadonlyMap<string, ToolEntry>,
  descriptions: ReadonlyMap<string, Described["description"]>,
): CallableSnapshot {
  const callable = [...tools.values()].filter(({ catalog }) =>
    catalog.allowedCallers.has("programmatic"),
  );
  const entries = callable.map((tool) => [tool.name, entryOf(tool, descriptions)] as const);
  const catalog = new Catalog(entries.map(([, entry]) => entry));
  const names = new Map(entries.map(([name, { id }]) => [id, name]));
  return { catalog, search: new ToolSearch(catalog), names };
}

/** The manifest's parts where nothing is known of the code. */
function entryOf(
  tool: ToolEntry,
  descriptions: ReadonlyMap<string, Described["description"]>,
): CatalogEntry {
  const { name, described, catalog } = tool;
  const known = descriptions.get(name);
  return {
    id: toolIdOf(tool),
    description: known?.description ?? tool.description,
    notes: known?.instructions ?? described.instructions,
    parameters: known?.parameters ?? described.parameters,
    returns: known?.result ?? described.result,
    tags: catalog.tags,
    examples: catalog.examples,
  };
}
