/**
 * The tools of a manifest that code may call by a gateway.
 */
import { type Manifest, type ToolEntry, toolIdOf } from "../../worker/manifest/manifest.ts";
import { ToolScope } from "../../worker/protocol/tool-calls/tool-id.ts";

/** Those that are served, allow programs and are in a list of patterns. */
export function callableOf({ tools }: Manifest, patterns: readonly string[]): readonly ToolEntry[] {
  const scope = new ToolScope(patterns);
  return [...tools.values()].filter(
    (tool) => tool.catalog.allowedCallers.has("programmatic") && scope.allows(toolIdOf(tool)),
  );
}
