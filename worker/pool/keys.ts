/**
 * What decides what is in a sandbox before its call, as texts that are equal where sandboxes can
 * stand for each other.
 */
import type { ToolEntry } from "../manifest/manifest.ts";
import { limitNames } from "../protocol/resource-limits.ts";
import type { Profile } from "../sandbox/profile.ts";

const keysOfEntries = new WeakMap<ToolEntry, string>();
const keysOfProfiles = new WeakMap<Profile, string>();

/**
 * The key of a tool's entry. Two entries have the same one when sandboxes that wait for calls of
 * the one may take calls of the other. Computed once for each object.
 */
export function entryKey(entry: ToolEntry): string {
  const known = keysOfEntries.get(entry);
  if (known !== undefined) return known;
  const key = sortedText(whatSandboxesDependOn(entry));
  keysOfEntries.set(entry, key);
  return key;
}

/**
 * The key of a profile: what it is called and all that it allows. Computed once for each object.
 */
export function profileKey(profile: Profile): string {
  const known = keysOfProfiles.get(profile);
  if (known !== undefined) return known;
  const { limits, ...rest } = profile;
  const key = sortedText(rest) + limitNames.map((name) => limits[name]).join();
  keysOfProfiles.set(profile, key);
  return key;
}

/**
 * All but what is decided call by call, or by the profile: members that nobody thought of here
 * count.
 */
function whatSandboxesDependOn(entry: ToolEntry): object {
  const {
    description: _description,
    timeoutSeconds: _timeoutSeconds,
    idempotent: _idempotent,
    queue: _queue,
    warm: _warm,
    profile: _profile,
    limits: _limits,
    network: _network,
    ...rest
  } = entry;
  return rest;
}

function sortedText(record: object): string {
  return JSON.stringify(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)));
}
