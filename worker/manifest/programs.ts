/**
 * Entries for programs: one interpreter for each language.
 */
import type { ProgramLanguage } from "../protocol/tool-calls/program.ts";
import type { ToolEntry } from "./manifest.ts";

/** The interpreter of a language. */
export function runtimeOf(language: ProgramLanguage): "python" | "node" {
  return language === "python" ? "python" : "node";
}

/** Those that programs of one entry run as, by interpreter. Pools know entries by identity. */
const kept = new WeakMap<ToolEntry, readonly ToolEntry[]>();

/** The entry, or where it is for programs one for each interpreter. */
export function entriesOf(tool: ToolEntry): readonly ToolEntry[] {
  const { languages } = tool;
  if (languages === undefined) return [tool];
  const known = kept.get(tool);
  if (known !== undefined) return known;
  const runtimes = [...new Set(languages.map(runtimeOf))];
  const entries = runtimes.map((runtime) => ({ ...tool, runtime }));
  kept.set(tool, entries);
  return entries;
}

/** The entry that runs programs of a language, one of those of {@link entriesOf}. */
export function entryFor(tool: ToolEntry, language: ProgramLanguage): ToolEntry {
  const runtime = runtimeOf(language);
  return entriesOf(tool).find((entry) => entry.runtime === runtime) ?? tool;
}
