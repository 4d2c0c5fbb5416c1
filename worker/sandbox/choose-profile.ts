/**
 * The profile of a call: which settings a manifest and a request may combine.
 */
import { isDeepStrictEqual } from "node:util";
import { isPublicOnly, meet } from "../protocol/network-meet.ts";
import type { Network } from "../protocol/network-rules.ts";
import { type Limits, limitNames } from "../protocol/resource-limits.ts";
import { type Profile, idleStartModes, systemCallFilters, tightestProfile } from "./profile.ts";
import { backendNames } from "./registry.ts";

/** What an operator says of one tool in place of its profile. */
export interface ProfileOverrides {
  readonly limits: Partial<Limits>;
  readonly network: Network | undefined;
}

/** What decides the profile of a call. */
export interface ProfileChoice {
  /** The manifest's, or undefined when it names none. */
  readonly manifest: Profile | undefined;
  readonly overrides: ProfileOverrides;
  /**
   * The request's, or undefined when it names none. Real agents send `standard` with every call.
   */
  readonly requested: Profile | undefined;
  /** The worker's default. */
  readonly fallback: Profile;
}

/**
 * The profile that a call runs under. What a tool is granted is the manifest's profile, or else the
 * default, with the tool's overrides. A request for `restrictive`, or for a profile that is tighter
 * than the default where the manifest names none, takes from that; no request adds to it.
 */
export function chooseProfile(choice: ProfileChoice): Profile {
  const { manifest, overrides, requested, fallback } = choice;
  const granted = overridden(manifest ?? fallback, overrides);
  if (requested === undefined) return granted;
  const tightens =
    requested.name === tightestProfile ||
    (manifest === undefined && requested.name !== fallback.name && isWithin(requested, fallback));
  return tightens ? tighterOf(requested, granted) : granted;
}

/** A profile with the overrides of a tool, under its own name. */
function overridden(profile: Profile, { limits, network }: ProfileOverrides): Profile {
  return {
    ...profile,
    limits: { ...profile.limits, ...limits },
    network: overriddenNetwork(profile.network, network),
  };
}

/** A word is replaced, as is a profile's `public`; a profile's list of hosts must consent. */
function overriddenNetwork(profile: Network, override: Network | undefined): Network {
  if (override === undefined) return profile;
  return typeof profile === "string" || isPublicOnly(profile) ? override : meet(profile, override);
}

/** Members that are one of a few words, from tight to wide. */
const tighterWord = <Word>(words: readonly Word[], a: Word, b: Word): Word =>
  words.indexOf(a) < words.indexOf(b) ? a : b;

/** What both profiles allow, in each of their members, under the name of the first. */
function tighterOf(a: Profile, b: Profile): Profile {
  const limits = limitNames.map((name) => [name, Math.min(a.limits[name], b.limits[name])]);
  return {
    name: a.name,
    backend: tighterWord(backendNames, a.backend, b.backend),
    limits: Object.fromEntries(limits) as Limits,
    network: meet(a.network, b.network),
    readsEtc: a.readsEtc && b.readsEtc,
    hasVar: a.hasVar && b.hasVar,
    terminals: a.terminals && b.terminals,
    systemCalls: tighterWord(systemCallFilters, a.systemCalls, b.systemCalls),
    autoStart: tighterWord(idleStartModes, a.autoStart, b.autoStart),
  };
}

/** Whether a profile allows nothing, in any of its members, that the other does not. */
export function isWithin(profile: Profile, other: Profile): boolean {
  return isDeepStrictEqual(tighterOf(profile, other), profile);
}
