/** Finds tools by words. */
import type { ToolView } from "../../worker/console/api.ts";

/** The tools whose name or description has every word of the search. */
export function searchTools(tools: readonly ToolView[], search: string): readonly ToolView[] {
  const words = search.toLowerCase().split(/\s+/);
  return tools.filter(({ name, description }) => {
    const text = `${name} ${description ?? ""}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}
