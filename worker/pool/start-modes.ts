/**
 * Which ways there are to make the sandboxes of a tool ready before its calls, the best first.
 */
import type { ToolEntry } from "../manifest/manifest.ts";
import type { IdleStartMode, Profile } from "../sandbox/profile.ts";

/**
 * The ways to be tried, one after the other as they turn out unfit; when none is left, its calls
 * start cold.
 */
export function startModesOf(
  { start }: Pick<ToolEntry, "start">,
  { autoStart }: Pick<Profile, "autoStart">,
): readonly IdleStartMode[] {
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
