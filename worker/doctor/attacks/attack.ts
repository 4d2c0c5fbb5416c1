/**
 * What an attack is: a hostile tool, what it aims at, and who says whether it was held.
 */
import type { InvocationOutcome } from "../../protocol/invocation.ts";
import type { Limits } from "../../protocol/resource-limits.ts";
import type { Profile } from "../../sandbox/profile.ts";
import type { Enforcement } from "../../sandbox/sandbox.ts";

/** What an attack is after. */
export type AttackGroup =
  "files" | "processes" | "privileges" | "kernel" | "network" | "traces" | "limits" | "worker";

/**
 * What is planted for an attack to reach, and how much it may take. The same members for the real
 * sandbox, where they are of this host, and for the baseline, where they are of a scratch system.
 * Programs get it with names_like_this; see attacks/README.md.
 */
export interface Target {
  /** What proves that something was reached; new for each run. */
  readonly token: string;
  /** A file with the token in it that every user of the host can read. */
  readonly secretFile: string;
  /** An empty directory that every user of the host can write to. */
  readonly openDirectory: string;
  /**
   * A process of the sandboxes' user with the token in its environment, on its command line and in
   * its memory.
   */
  readonly siblingPid: number;
  /** The worker. */
  readonly workerPid: number;
  /**
   * Directory of the worker's sandboxes, with a work directory that has the token in it while a
   * victim runs.
   */
  readonly workBase: string;
  /** Name of a variable that the worker has with the token as its value. */
  readonly variable: string;
  /** Port of a service on 127.0.0.1 that answers with the token. */
  readonly loopbackPort: number;
  /** Where clouds tell machines about themselves, credentials included. */
  readonly metadataAddress: string;
  /** Addresses of name servers. */
  readonly nameServers: readonly string[];
  /**
   * A listening socket in the file system, and one by an abstract name, that answer with the token.
   */
  readonly socketPath: string;
  readonly abstractSocket: string;
  /**
   * Namespaces of the worker, by kind, but for the network's: `ipc:[4026531839]`; see
   * namespaces(7).
   */
  readonly namespaces: Readonly<Record<string, string>>;
  /**
   * Bounds that are in force, in the units of their names. Nothing takes more than twice as much.
   */
  readonly limits: Limits;
  /** Which call of the attack this is, from 1 to {@link Attack.rounds}. */
  readonly round: number;
}

/** What was seen of one run in the real sandbox. */
export interface Observation {
  /** Of the last round. */
  readonly outcome: InvocationOutcome;
  /** Texts of statuses that would have been published. */
  readonly statuses: readonly string[];
  /** Contents of artifacts that were saved, by name. */
  readonly artifacts: ReadonlyMap<string, Uint8Array>;
  /** Longest time in milliseconds that the worker's event loop stood still meanwhile. */
  readonly longestStallMs: number;
  /** From the call to its outcome. */
  readonly durationMs: number;
  readonly target: Target;
  /** Why no sandbox was ready for the call where one should have been; undefined when one was. */
  readonly notReady?: string | undefined;
}

/** Whether an attack was held, and how one sees it. */
export interface Verdict {
  readonly blocked: boolean;
  readonly evidence: string;
}

/** One attack. */
export interface Attack {
  /** Name of its program below `attacks/`, without `.py`. */
  readonly id: string;
  readonly group: AttackGroup;
  /** What it tries, in a few words. */
  readonly title: string;
  /**
   * Whether `npm test` runs it; all of them run in `npm run test:full` and in `str-worker doctor
   * --attack`.
   */
  readonly isFast: boolean;
  /**
   * Why it is not promised to be held under a profile on this host, or undefined when it is: `host`
   * networks reach loopback, for example.
   */
  notPromised?(
    profile: Profile,
    unenforced: readonly string[],
    enforcement: Enforcement,
  ): string | undefined;
  /**
   * Why it is not promised to be held when the import of its module makes it, in a template, or
   * undefined when it is. See `attack-starts.ts` for the attacks that imports make.
   */
  readonly notPromisedAtImport?: string;
  /**
   * Judges a run in the real sandbox; without it the program's own `reached` counts, and a run
   * without an answer of its own is broken. It is not asked about calls that no sandbox ran for:
   * these are broken.
   */
  judge?(observation: Observation): Verdict;
  /**
   * Calls in a row, each in a sandbox of its own, of which the last counts: 1 unless given.
   * Baselines do them in one.
   */
  readonly rounds?: number;
  /** Whether another call runs meanwhile, with the token wherever a call can have something. */
  readonly needsVictim?: boolean;
  /** What its manifest entry says besides. */
  readonly manifest?: Readonly<Record<string, unknown>>;
  /**
   * What the baseline runs besides: `naive-worker` reads what the program left as an unprotected
   * worker would; `naive-template` imports the module in a parent, and calls it in a child that
   * sees everything of the parent.
   */
  readonly baseline?: "naive-worker" | "naive-template";
  /**
   * Why its baseline cannot reach anything on this host, or undefined when it can. Asked when it did
   * not.
   */
  noBaseline?(unenforced: readonly string[]): string | undefined;
}
