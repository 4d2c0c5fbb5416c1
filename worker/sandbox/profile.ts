/**
 * Sandbox profiles: what a tool may use and see, as one table of data (design document, section 9.1).
 */
import type { Limits } from "../protocol/resource-limits.ts";

const MiB = 1024 * 1024;

/** Sandbox technologies that a profile can ask for. `host` isolates nothing. */
export type BackendKind = "bubblewrap" | "host";

/** A profile. Every name below it receives this record, never the name. */
export interface Profile {
  readonly name: string;
  readonly backend: BackendKind;
  readonly limits: Limits;
  readonly network: NetworkMode;
  /** Whether the host's /etc is visible read-only. */
  readonly readsEtc: boolean;
  /** Whether a private /var exists. */
  readonly hasVar: boolean;
}

/** `none`: an empty network namespace. `host`: the host's network, with its certificates and name service files. */
export type NetworkMode = "none" | "host";

/** Profiles by name. */
export type Profiles = ReadonlyMap<string, Profile>;

/** The profile that a request may always ask for, because it only tightens. */
export const tightestProfile = "restrictive";

/** The profile of that name. */
export const restrictiveProfile: Profile = {
  name: tightestProfile,
  backend: "bubblewrap",
  limits: {
    memoryBytes: 512 * MiB,
    cpuSeconds: 60,
    cpus: 1,
    fileSizeBytes: 64 * MiB,
    openFiles: 128,
    processes: 32,
    tmpBytes: 64 * MiB,
    diskBytes: 256 * MiB,
    files: 10_000,
    statusBytes: 1 * MiB,
  },
  network: "none",
  readsEtc: false,
  hasVar: false,
};

/** The three profiles of the design document, with RLIMIT_NPROC from its successors. */
export const builtInProfiles: Profiles = new Map<string, Profile>(
  [
    restrictiveProfile,
    {
      name: "standard",
      backend: "bubblewrap" as const,
      limits: {
        memoryBytes: 1024 * MiB,
        cpuSeconds: 300,
        cpus: 2,
        fileSizeBytes: 256 * MiB,
        openFiles: 512,
        processes: 128,
        tmpBytes: 256 * MiB,
        diskBytes: 1024 * MiB,
        files: 50_000,
        statusBytes: 4 * MiB,
      },
      network: "host" as const,
      readsEtc: false,
      hasVar: false,
    },
    {
      name: "permissive",
      backend: "bubblewrap" as const,
      limits: {
        memoryBytes: 4096 * MiB,
        cpuSeconds: 600,
        cpus: 4,
        fileSizeBytes: 1024 * MiB,
        openFiles: 1024,
        processes: 512,
        tmpBytes: 1024 * MiB,
        diskBytes: 4096 * MiB,
        files: 200_000,
        statusBytes: 16 * MiB,
      },
      network: "host" as const,
      readsEtc: true,
      hasVar: true,
    },
  ].map((profile) => [profile.name, profile]),
);

/** What decides the profile of a call. */
export interface ProfileChoice {
  /** The manifest's, or undefined when it names none. */
  readonly manifest: string | undefined;
  /** The request's, or undefined when it names none. Real agents send `standard` with every call. */
  readonly requested: string | undefined;
  /** The worker's default. */
  readonly fallback: string;
}

/**
 * The name of the profile a call runs under: the manifest's if it names one, else the request's, else the default.
 * A request for `restrictive` always tightens. Nothing in a request widens: without a manifest's word it can reach
 * the default at most.
 */
export function chooseProfileName(choice: ProfileChoice): string {
  if (choice.requested === tightestProfile) return tightestProfile;
  return choice.manifest ?? narrower(choice.requested, choice.fallback);
}

/** Built-in profiles from tight to wide; a request moves only towards the front. */
const fromTightToWide = [...builtInProfiles.keys()];

function narrower(requested: string | undefined, fallback: string): string {
  if (requested === undefined) return fallback;
  const asked = fromTightToWide.indexOf(requested);
  // A name that is not in the table says nothing about which of the two is tighter.
  return asked !== -1 && asked < fromTightToWide.indexOf(fallback) ? requested : fallback;
}
