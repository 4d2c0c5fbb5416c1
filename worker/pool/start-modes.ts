/**
 * The start modes of a tool's idle sandboxes.
 */
import type { ToolEntry } from "../manifest/manifest.ts";
import type { IdleStartMode, Profile } from "../sandbox/profile.ts";

/** The best first. When all are unfit, calls start cold. */
export function startModesOf(
  { start, runtime }: Pick<ToolEntry, "start" | "runtime">,
  { autoStart }: Pick<Profile, "autoStart">,
): readonly IdleStartMode[] {
  // A program begins its call with its first instruction.
  if (runtime === "executable") return [];
  switch (start) {
    case "auto":
      return autoStart === "template" ? ["template", "pool"] : ["pool"];
    case "cold":
      return [];
    case "template":
    case "pool":
      return [start];
  }
}
