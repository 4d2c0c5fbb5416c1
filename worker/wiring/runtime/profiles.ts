/**
 * The profiles of the library over those of sandboxes. No name of the one is one of the other.
 */
import {
  type Profile,
  type Profiles,
  builtInProfiles,
  restrictiveProfile,
} from "../../sandbox/profile.ts";
import { limitNames, type Limits } from "../../protocol/resource-limits.ts";
import { type RuntimeProfile, runtimeProfiles } from "../../runtime/api/request.ts";

/** The name of a profile's sandboxes in logs. */
export function sandboxProfileName(profile: RuntimeProfile): string {
  return `runtime-${profile}`;
}

/**
 * What makes `hardened` of a technology more than `standard`: a filter of system calls, or a kernel
 * of its own. Without either there is no such profile.
 */
export type Hardening = "filter" | "kernel" | "none";

/** The profiles that a technology keeps. */
export function keptProfiles(hardening: Hardening): readonly RuntimeProfile[] {
  return runtimeProfiles.filter((profile) => profile !== "hardened" || hardening !== "none");
}

/** Sandboxes of a technology: with a minimal root, and without a network. */
export function runtimeSandboxProfiles(backend: string, hardening: Hardening): Profiles {
  const usual = builtInProfiles.get("standard") ?? restrictiveProfile;
  const closed = { ...usual, backend, network: "none", terminals: false } as const;
  const least = limitNames.map((name) => [
    name,
    Math.min(usual.limits[name], restrictiveProfile.limits[name]),
  ]);
  const systemCalls = hardening === "filter" ? "strict" : "usual";
  const named: readonly Profile[] = [
    { ...closed, name: sandboxProfileName("dev") },
    { ...closed, name: sandboxProfileName("standard") },
    {
      ...restrictiveProfile,
      ...{ backend, name: sandboxProfileName("hardened"), systemCalls },
      limits: Object.fromEntries(least) as Limits,
    },
  ];
  return new Map(named.map((profile) => [profile.name, profile]));
}
