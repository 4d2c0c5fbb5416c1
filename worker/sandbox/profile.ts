/**
 * Sandbox profiles: what a tool may use and see, as one table of data (design document, section
 * 9.1).
 */
import { isDeepStrictEqual } from "node:util";
import { type NetworkMode, networkModes } from "../protocol/operator-fields.ts";
import { type Limits, limitNames } from "../protocol/resource-limits.ts";

const MiB = 1024 * 1024;

/** Sandbox technologies that a profile can ask for, from tight to wide. `host` isolates nothing. */
export const backendKinds = ["bubblewrap", "host"] as const;
export type BackendKind = (typeof backendKinds)[number];

/**
 * Starts that are made before calls come, from tight to wide. A template loads the tool where
 * namespaces can be created; see SECURITY.md.
 */
export const idleStartModes = ["pool", "template"] as const;
export type IdleStartMode = (typeof idleStartModes)[number];

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
  /**
   * Whether tools can open pseudo terminals. The kernel counts those for the whole host, and has
   * few.
   */
  readonly terminals: boolean;
  /** How sandboxes are made before calls come, for tools that leave it to the worker. */
  readonly autoStart: IdleStartMode;
}

/** Whether sandboxes of a profile keep anything apart. */
export function isolates({ backend }: Pick<Profile, "backend">): boolean {
  return backend !== "host";
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
  autoStart: "pool",
};

/**
 * The three profiles of the design document, with the number of processes from its successors.
 * Disk, number of files and status volume are ours: the document bounds none of them.
 */
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
      terminals: false,
      autoStart: "template" as const,
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
      terminals: true,
      autoStart: "template" as const,
    },
  ].map((profile) => [profile.name, profile]),
);

/** What an operator says of one tool in place of its profile. */
export interface ProfileOverrides {
  readonly limits: Partial<Limits>;
  readonly network: NetworkMode | undefined;
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
    network: network ?? profile.network,
  };
}

/** Members that are one of a few words, from tight to wide. */
const tighterWord = <Word>(words: readonly Word[], a: Word, b: Word): Word =>
  words.indexOf(a) < words.indexOf(b) ? a : b;

/** What both profiles allow, in each of their members, under the name of the first. */
function tighterOf(a: Profile, b: Profile): Profile {
  const limits = limitNames.map((name) => [name, Math.min(a.limits[name], b.limits[name])]);
  return {
    name: a.name,
    backend: tighterWord(backendKinds, a.backend, b.backend),
    limits: Object.fromEntries(limits) as Limits,
    network: tighterWord(networkModes, a.network, b.network),
    readsEtc: a.readsEtc && b.readsEtc,
    hasVar: a.hasVar && b.hasVar,
    terminals: a.terminals && b.terminals,
    autoStart: tighterWord(idleStartModes, a.autoStart, b.autoStart),
  };
}

/** Whether a profile allows nothing, in any of its members, that the other does not. */
export function isWithin(profile: Profile, other: Profile): boolean {
  return isDeepStrictEqual(tighterOf(profile, other), profile);
}
