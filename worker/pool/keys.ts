/**
 * Keys of pools: texts that are equal where idle sandboxes can take each other's calls.
 */
import type { ToolEntry } from "../manifest/manifest.ts";
import { limitNames } from "../protocol/resource-limits.ts";
import type { Profile } from "../sandbox/profile.ts";

/** Each call needs two: they are computed once for each object. */
const keys = new WeakMap<object, string>();

/** The key of a tool's entry. */
export function entryKey(entry: ToolEntry): string {
  return remembered(entry, () => sortedText(contentOf(entry)));
}

/** The key of a profile: its name and all that it allows. */
export function profileKey(profile: Profile): string {
  return remembered(profile, () => {
    const { limits, ...rest } = profile;
    return sortedText(rest) + limitNames.map((name) => limits[name]).join();
  });
}

/** All but what each call decides, or the profile: a member that is new here counts. */
function contentOf(entry: ToolEntry): object {
  const {
    description: _description,
    described: _described,
    argumentRules: _argumentRules,
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

function remembered(object: object, compute: () => string): string {
  const known = keys.get(object);
  if (known !== undefined) return known;
  const key = compute();
  keys.set(object, key);
  return key;
}

function sortedText(record: object): string {
  return JSON.stringify(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)));
}
