/**
 * The profiles of the library over those of sandboxes. No name of the one is one of the other.
 */
import { type Profile, builtInProfiles, restrictiveProfile } from "../../sandbox/profile.ts";
import { limitNames, type Limits } from "../../protocol/resource-limits.ts";
import type { RuntimeProfile } from "../../runtime/api/request.ts";

/** The name of a profile's sandboxes in logs. */
export function sandboxProfileName(profile: RuntimeProfile): string {
  return `runtime-${profile}`;
}

/** Sandboxes of a technology: with a minimal root, and without a network. */
export function runtimeSandboxProfiles(backend: string): ReadonlyMap<string, Profile> {
  const usual = builtInProfiles.get("standard") ?? restrictiveProfile;
  const closed = { ...usual, backend, network: "none", terminals: false } as const;
  const least = limitNames.map((name) => [
    name,
    Math.min(usual.limits[name], restrictiveProfile.limits[name]),
  ]);
  const named: Readonly<Record<RuntimeProfile, Profile>> = {
    dev: { ...closed, name: sandboxProfileName("dev") },
    standard: { ...closed, name: sandboxProfileName("standard") },
    hardened: {
      ...restrictiveProfile,
      ...{ backend, name: sandboxProfileName("hardened"), systemCalls: "strict" },
      limits: Object.fromEntries(least) as Limits,
    },
  };
  return new Map(Object.values(named).map((profile) => [profile.name, profile]));
}
