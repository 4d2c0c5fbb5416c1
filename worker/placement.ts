/**
 * Maps tools to queues of the worker group.
 */
import type { ToolPlacement } from "./broker/broker.ts";
import type { ToolCatalog } from "./manifest/catalog.ts";

/** Queues by the manifest in force. */
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
