/**
 * Sandbox profiles: what a tool may use and see, as one table of data (design document, section
 * 9.1).
 */
import { type Network, publicNetwork } from "../protocol/network-rules.ts";
import type { Limits } from "../protocol/resource-limits.ts";

const MiB = 1024 * 1024;

/**
 * Starts that are made before calls come, from tight to wide. A template loads the tool where
 * namespaces can be created; see SECURITY.md.
 */
export const idleStartModes = ["pool", "template"] as const;
export type IdleStartMode = (typeof idleStartModes)[number];

/**
 * Filters of system calls, from tight to wide. `strict` has no network calls, and the runners of
 * Python refuse new programs besides; see SECURITY.md.
 */
export const systemCallFilters = ["strict", "usual"] as const;
export type SystemCallFilter = (typeof systemCallFilters)[number];

/** A profile. Every name below it receives this record, never the name. */
export interface Profile {
  readonly name: string;
  /** Name of a backend in registry.ts. */
  readonly backend: string;
  readonly limits: Limits;
  readonly network: Network;
  /** Whether the host's /etc is visible read-only. */
  readonly readsEtc: boolean;
  /** Whether a private /var exists. */
  readonly hasVar: boolean;
  /**
   * Whether tools can open pseudo terminals. The kernel counts those for the whole host, and has
   * few.
   */
  readonly terminals: boolean;
  readonly systemCalls: SystemCallFilter;
  /** How sandboxes are made before calls come, for tools that leave it to the worker. */
  readonly autoStart: IdleStartMode;
}

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
  terminals: false,
  systemCalls: "usual",
  autoStart: "pool",
};

/** The profile whose network `SANDBOX_DEFAULT_NETWORK` decides. */
const standardProfile = "standard";

/**
 * The three profiles of the design document, with the number of processes from its successors.
 * Disk, number of files and status volume are ours: the document bounds none of them. So is the
 * network of `standard`, which is the host's there.
 */
export const builtInProfiles: Profiles = new Map<string, Profile>(
  [
    restrictiveProfile,
    {
      name: standardProfile,
      backend: "bubblewrap",
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
      network: publicNetwork,
      readsEtc: false,
      hasVar: false,
      terminals: false,
      systemCalls: "usual" as const,
      autoStart: "template" as const,
    },
    {
      name: "permissive",
      backend: "bubblewrap",
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
      terminals: true,
      systemCalls: "usual" as const,
      autoStart: "template" as const,
    },
  ].map((profile) => [profile.name, profile]),
);

/** The built-in profiles where `standard` has another network than public addresses. */
export function builtInProfilesWith(network: Network): Profiles {
  const all = [...builtInProfiles.values()].map((profile) =>
    profile.name === standardProfile ? { ...profile, network } : profile,
  );
  return new Map(all.map((profile) => [profile.name, profile]));
}

/** The profile where `host` stands for another network. */
export function withHostNetwork(profile: Profile, network: Network): Profile {
  return profile.network === "host" ? { ...profile, network } : profile;
}
