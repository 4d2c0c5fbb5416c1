/**
 * An attack: a hostile tool, its target, and its judge.
 */
import type { InvocationOutcome } from "../../protocol/invocation.ts";
import type { Limits } from "../../protocol/resource-limits.ts";
import type { Profile } from "../../sandbox/profile.ts";
import type { Enforcement } from "../../sandbox/sandbox.ts";

/**
 * The part of the host that an attack targets. Tools of `egress` have a list of hosts, those of
 * `gateway` may call the tools of `attacks/harmless/called.py`.
 */
export type AttackGroup =
  | "files"
  | "processes"
  | "privileges"
  | "kernel"
  | "network"
  | "egress"
  | "gateway"
  | "traces"
  | "limits"
  | "worker";

/**
 * Canaries for an attack, and its limits. They belong to this host, or to the arena of a baseline.
 * Programs receive the members with names_like_this; see attacks/README.md.
 */
export interface Target {
  /** Proves that a canary was reached; random for each run. */
  readonly token: string;
  /** A file with the token in it that every user of the host can read. */
  readonly secretFile: string;
  /** An empty directory that every user of the host can write to. */
  readonly openDirectory: string;
  /** Process of the sandboxes' user; environment, command line and memory hold the token. */
  readonly siblingPid: number;
  /** The worker. */
  readonly workerPid: number;
  /** Directory of the worker's sandboxes; the work directory of a victim holds the token. */
  readonly workBase: string;
  /** Name of a variable of the worker whose value is the token. */
  readonly variable: string;
  /** Port of a service on 127.0.0.1 that answers with the token. */
  readonly loopbackPort: number;
  /**
   * Port of a service on 127.0.0.1 that the list has, by `listedName`. It answers `listed` to that
   * name, and with the token to `unlistedName`.
   */
  readonly listedPort: number;
  /** Port of a service on 127.0.0.1 that answers datagrams with the token; the list has it, too. */
  readonly datagramPort: number;
  readonly listedName: string;
  /** A name of no host. */
  readonly unlistedName: string;
  /** Listed for `loopbackPort`; it has a public address and 127.0.0.1. */
  readonly rebindingName: string;
  /** Listed for port 80; it has `metadataAddress`. */
  readonly metadataName: string;
  /** Port of a service on 127.0.0.1 that answers with the token; the list has it nowhere. */
  readonly unlistedPort: number;
  /** Connections that the list allows at once, and that a call may make in all. */
  readonly maxConnections: number;
  readonly maxConnectionsInAll: number;
  /** Seconds that the worker's HTTP proxy waits for the headers of a request. */
  readonly headerSeconds: number;
  /** Address of the cloud's metadata service, which also has credentials. */
  readonly metadataAddress: string;
  /** Addresses of name servers. */
  readonly nameServers: readonly string[];
  /** Unix sockets that answer with the token: a file, and an abstract name. */
  readonly socketPath: string;
  readonly abstractSocket: string;
  /** The worker's namespaces by kind, without the network's: `ipc:[4026531839]`; namespaces(7). */
  readonly namespaces: Readonly<Record<string, string>>;
  /** Limits in force. No attack takes more than twice as much. */
  readonly limits: Limits;
  /** Number of this call, from 1 to {@link Attack.rounds}. */
  readonly round: number;
}

/** The observation of one run in the real sandbox. */
export interface Observation {
  /** Of the last round. */
  readonly outcome: InvocationOutcome;
  /** Texts of the statuses to publish. */
  readonly statuses: readonly string[];
  /** Contents of the saved artifacts, by name. */
  readonly artifacts: ReadonlyMap<string, Uint8Array>;
  /** Names whose addresses the worker looked for, for any sandbox. */
  readonly askedNames: readonly string[];
  /** Longest stall of the worker's event loop, in milliseconds. */
  readonly longestStallMs: number;
  /** Milliseconds from the call to its outcome. */
  readonly durationMs: number;
  readonly target: Target;
  /** Why no idle sandbox was ready for the call; undefined when one was. */
  readonly notReady?: string | undefined;
}

/** Whether an attack was blocked, with the evidence. */
export interface Verdict {
  readonly blocked: boolean;
  readonly evidence: string;
}

/** One attack. */
export interface Attack {
  /** Name of its program below `attacks/`, without `.py`. */
  readonly id: string;
  readonly group: AttackGroup;
  /** The attempt, in a few words. */
  readonly title: string;
  /** Whether `npm test` runs it; `npm run test:full` and `str-worker doctor --attack` run all. */
  readonly isFast: boolean;
  /**
   * Why a profile on this host does not promise to block it; undefined when it does. Networks of
   * the kind `host` reach loopback, for example.
   */
  notPromised?(
    profile: Profile,
    unenforced: readonly string[],
    enforcement: Enforcement,
  ): string | undefined;
  /** Why a template does not promise to block it at import; undefined when it does. */
  readonly notPromisedAtImport?: string;
  /**
   * Judges a run that a sandbox executed. Without a judge or its verdict the program's `reached`
   * counts, and a run without an answer is broken.
   */
  judge?(observation: Observation): Verdict | undefined;
  /** Consecutive calls, each in a new sandbox; the last counts. 1 by default. */
  readonly rounds?: number;
  /**
   * Whether a victim runs meanwhile, with the token in each of its directories; for `egress` it
   * answers with the token where it listens, for `gateway` it gives its channel away there.
   */
  readonly needsVictim?: boolean;
  /** Whether it runs as a program, and not as a tool: its value is the answer. */
  readonly isProgram?: boolean;
  /** Further fields of its manifest entry. */
  readonly manifest?: Readonly<Record<string, unknown>>;
  /**
   * `naive-worker` reads the left files as an unprotected worker. `naive-template` imports the
   * module in a parent, and calls it in a child that sees everything of the parent.
   * `naive-gateway` serves every request of the program.
   */
  readonly baseline?: "naive-worker" | "naive-template" | "naive-gateway";
  /** Why a baseline that missed its target cannot reach it on this host; undefined when it can. */
  noBaseline?(unenforced: readonly string[]): string | undefined;
}
