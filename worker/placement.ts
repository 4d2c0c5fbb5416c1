/**
 * Which queue of the worker group holds the calls of a tool.
 */
import type { ToolPlacement } from "./broker/broker.ts";
import type { ToolCatalog } from "./manifest/catalog.ts";

/** Which queues the manifest in force has for its tools. */
export function placementIn(
  catalog: Pick<ToolCatalog, "manifest" | "resolve" | "unavailable">,
): ToolPlacement {
  return {
    queueOf(tool) {
      const refused = catalog.unavailable(tool);
      return catalog.resolve(tool)?.queue ?? refused?.entry?.queue ?? refused?.queue;
    },
    foreignTools: () =>
      [...catalog.manifest.unavailable].flatMap(([name, { entry }]) =>
        entry === undefined ? [name] : [],
      ),
  };
}
