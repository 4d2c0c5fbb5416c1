/**
 * Profiles as attacks meet them: with every limit so low that an attack that is not held hurts nobody.
 */
import { type Limits, limitNames } from "../protocol/resource-limits.ts";
import type { Profile, Profiles } from "../sandbox/profile.ts";

const KiB = 1024;
const MiB = 1024 * KiB;

/** The most that a limit is while attacks run. Enough for an interpreter; twice as much does no harm to a host. */
export const attackLimits: Limits = {
  memoryBytes: 128 * MiB,
  cpuSeconds: 2,
  cpus: 1,
  processes: 32,
  openFiles: 64,
  fileSizeBytes: 12 * MiB,
  tmpBytes: 16 * MiB,
  diskBytes: 32 * MiB,
  files: 1_000,
  statusBytes: 64 * KiB,
};

/** The same profile with limits of at most {@link attackLimits}. */
export function lowered(profile: Profile): Profile {
  const limits = Object.fromEntries(
    limitNames.map((name) => [name, Math.min(profile.limits[name], attackLimits[name])]),
  ) as Limits;
  return { ...profile, limits };
}

/** The same for all of them. */
export function loweredProfiles(profiles: Profiles): Profiles {
  return new Map([...profiles].map(([name, profile]) => [name, lowered(profile)]));
}
