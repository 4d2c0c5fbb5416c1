/**
 * The profiles and hosts on which the sandbox does not promise to hold an attack.
 */
import type { Attack } from "../../worker/doctor/attacks/attack.ts";
import { limitNames } from "../../worker/protocol/resource-limits.ts";
import { builtInProfiles } from "../../worker/sandbox/profile.ts";
import type { Enforcement } from "../../worker/sandbox/sandbox.ts";

/** Names of built-in profiles, or of the kind of host; empty for an attack that is always held. */
export function unpromisedUnder(attack: Attack): string {
  const everywhere = profilesWithout(attack, "kernel");
  if (everywhere.length === builtInProfiles.size) return "any";
  if (everywhere.length > 0) return everywhere.join(", ");
  return profilesWithout(attack, "guard").length > 0 ? "any, without control groups" : "";
}

function profilesWithout(attack: Attack, by: "kernel" | "guard"): readonly string[] {
  const enforcement = Object.fromEntries(limitNames.map((name) => [name, by])) as Enforcement;
  return [...builtInProfiles.values()]
    .filter((profile) => attack.notPromised?.(profile, [], enforcement) !== undefined)
    .map(({ name }) => name);
}
