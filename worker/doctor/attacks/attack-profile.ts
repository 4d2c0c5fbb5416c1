/**
 * Attacked profiles: their limits are low, so that an attack that is not blocked does no harm.
 */
import { type Limits, limitNames } from "../../protocol/resource-limits.ts";
import type { Profile, Profiles } from "../../sandbox/profile.ts";
import { isolates } from "../../sandbox/registry.ts";
import { SandboxError } from "../../sandbox/sandbox.ts";

const KiB = 1024;
const MiB = 1024 * KiB;

/**
 * Upper bounds of all limits during attacks. An interpreter runs within them, and twice as much
 * does no harm. A new file can cost a millisecond of processor time, so `files` is low, too.
 */
export const attackLimits: Limits = {
  memoryBytes: 128 * MiB,
  cpuSeconds: 2,
  cpus: 1,
  processes: 32,
  openFiles: 64,
  fileSizeBytes: 12 * MiB,
  tmpBytes: 16 * MiB,
  diskBytes: 32 * MiB,
  files: 600,
  statusBytes: 64 * KiB,
};

/** The profile with limits of at most {@link attackLimits}. */
export function lowered(profile: Profile): Profile {
  const limits = Object.fromEntries(
    limitNames.map((name) => [name, Math.min(profile.limits[name], attackLimits[name])]),
  ) as Limits;
  return { ...profile, limits };
}

/** {@link lowered} for each profile. */
export function loweredProfiles(profiles: Profiles): Profiles {
  return new Map([...profiles].map(([name, profile]) => [name, lowered(profile)]));
}

/** Names of the profiles with a sandbox: attacks never run on the bare host. */
export function attackableNames(profiles: Profiles): readonly string[] {
  return [...profiles.values()].filter(isolates).map(({ name }) => name);
}

/** An attackable profile by name. Throws SandboxError, with the attackable names, for others. */
export function attackable(profiles: Profiles, name: string): Profile {
  const profile = profiles.get(name);
  if (profile !== undefined && isolates(profile)) return profile;
  const problem =
    profile === undefined
      ? `there is no profile "${name}"`
      : `the profile "${name}" has no sandbox, so nothing is attacked in it`;
  throw new SandboxError(`${problem}; to attack there are ${attackableNames(profiles).join(", ")}`);
}
