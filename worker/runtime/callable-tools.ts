/**
 * The tools that other tools may call, with their descriptions: those of the manifest that allow
 * it, and those of other workers that the manifest lists.
 */
import type { Described } from "../discovery/described-tools.ts";
import { Catalog, type CatalogEntry, maxTools } from "../gateway/catalog.ts";
import { ToolSearch } from "../gateway/search.ts";
import { type ToolEntry, toolIdOf } from "../manifest/manifest.ts";

/** Dependencies of {@link CallableTools}. */
export interface CallableToolsParts {
  /** The served tools; another map after each change. */
  readonly tools: () => ReadonlyMap<string, ToolEntry>;
  /** The descriptions that are known; a new array after each change. */
  readonly described: () => readonly Pick<Described, "tool" | "description">[];
  /** Tools of other workers; another array after each change. */
  readonly remote: () => readonly CatalogEntry[];
}

/** What is served at one time. */
export interface CallableSnapshot {
  readonly catalog: Catalog;
  readonly search: ToolSearch;
  /** The manifest's names, by id. */
  readonly names: ReadonlyMap<string, string>;
  /** Ids of the tools of other workers. */
  readonly remote: ReadonlySet<string>;
}

/** Builds the catalog when a gateway needs it and something has changed. */
export class CallableTools {
  readonly #parts: CallableToolsParts;
  /** What the snapshot is made of. */
  #sources: readonly unknown[] = [];
  #snapshot: CallableSnapshot | undefined;

  constructor(parts: CallableToolsParts) {
    this.#parts = parts;
  }

  snapshot(): CallableSnapshot {
    const { tools, described, remote } = this.#parts;
    const sources = [tools(), described(), remote()] as const;
    const isSame = sources.every((source, index) => source === this.#sources[index]);
    if (this.#snapshot === undefined || !isSame) {
      this.#sources = sources;
      this.#snapshot = snapshotOf(...sources);
    }
    return this.#snapshot;
  }
}

function snapshotOf(
  tools: ReadonlyMap<string, ToolEntry>,
  described: readonly Pick<Described, "tool" | "description">[],
  remote: readonly CatalogEntry[],
): CallableSnapshot {
  const descriptions = new Map(described.map(({ tool, description }) => [tool.name, description]));
  const callable = [...tools.values()].filter(({ catalog }) =>
    catalog.allowedCallers.has("programmatic"),
  );
  const entries = callable.map((tool) => [tool.name, entryOf(tool, descriptions)] as const);
  const names = new Map(entries.map(([name, { id }]) => [id, name]));
  // The manifest's own tools go first: the list of others may be older.
  const others = remote.filter(({ id }) => !tools.has(id)).slice(0, maxTools - names.size);
  const catalog = new Catalog([...entries.map(([, entry]) => entry), ...others]);
  const ids = new Set(others.map(({ id }) => id));
  return { catalog, search: new ToolSearch(catalog), names, remote: ids };
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
