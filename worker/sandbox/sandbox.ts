/**
 * The sandbox contract: two verbs, acquire and start, so that cold, parked and long-lived sandboxes
 * are one shape.
 */
import type { Duplex, Readable, Writable } from "node:stream";
import type { NetworkUsage } from "../protocol/execution.ts";
import type { LimitName, LimitReached, Limits, Mechanism } from "../protocol/resource-limits.ts";
import type { Clock } from "../support/clock.ts";
import type { NewId } from "../support/ids.ts";
import type { HostCheck } from "./host-check.ts";
import type { ConnectionLog, SandboxNetwork } from "./network/sockets.ts";
import type { Profile } from "./profile.ts";
import type { WorkDir } from "./work/work-dir.ts";

/**
 * The call's work directory inside every sandbox, read-write. Requests and launches use it; where a
 * backend mounts nothing, {@link Sandbox.locate} gives its path on the host.
 */
export const workDirInside = "/sandbox/work";

/**
 * The descriptor of the gateway in a command whose sandbox has one. A child of a template knows a
 * number of its own: tool-runner/PROTOCOL.md, "Templates".
 */
export const gatewayFd = 9;

/** A part of the host that a sandbox sees read-only. */
export interface ReadOnlyMount {
  readonly source: string;
  readonly target: string;
}

/** A directory of the host that a sandbox may change. */
export interface WritableMount {
  readonly source: string;
  readonly target: string;
}

/** A device file of the host that a sandbox may use. */
export interface Device {
  readonly source: string;
  /** Where it is inside: below /dev. */
  readonly path: string;
}

/**
 * Whether each process has the profile's memory as its address space too, beside the total of the
 * sandbox. `address-space`: it has (RLIMIT_AS), so that one that asks for too much can handle it.
 * `resident`: it has not, for programs that reserve far more address space than they use.
 */
export type MemoryBound = "address-space" | "resident";

/** What a sandbox is made for. Everything here may be known before the call is. */
export interface SandboxRequest {
  readonly profile: Profile;
  readonly memoryBound: MemoryBound;
  readonly mounts: readonly ReadOnlyMount[];
  /**
   * Directories of the host that the sandbox may change, which the sandboxes' user owns. No limit
   * counts what it writes there; each file has the limit of a file's size.
   */
  readonly writable?: readonly WritableMount[];
  readonly devices: readonly Device[];
  /** The whole environment inside; nothing else is inherited. */
  readonly environment: ReadonlyMap<string, string>;
  /** Serves its network where the profile has neither none nor the host's. */
  readonly network?: SandboxNetwork | undefined;
  /**
   * Whether the command has a stream socket, whose other end is `Execution.gateway`: it inherits it
   * as {@link gatewayFd}, or connects to {@link Sandbox.gatewayPath}.
   */
  readonly hasGateway?: boolean;
}

/** A command line, with paths as they are inside. */
export interface Launch {
  readonly argv: readonly string[];
  /** Whether the command reads its standard input from `Execution.stdin`, and not /dev/null. */
  readonly hasStdin?: boolean;
  /** Whether the command itself adds a filter of system calls, on all of its threads. */
  readonly addsFilter?: boolean;
}

/** The end of what a stream held, up to its cap. */
export interface CapturedOutput {
  readonly text: string;
  /** Bytes before that, read and dropped. */
  readonly droppedBytes: number;
}

/**
 * How an execution ended. When it is reported, no process of the sandbox is alive, but for some
 * that the kernel takes apart; see also `ending`.
 */
export interface ExitReport {
  /**
   * Given where the command has given its result and only its exit with 0 was left: all processes
   * have been killed and run no code of their own any more, and `output/` is empty. Fulfils when
   * they are gone, or cannot be ended; never rejects. Disposing the sandbox waits for that.
   */
  readonly ending?: Promise<void>;
  /** What the command gave as its `result.json`; undefined where that is a file, if anywhere. */
  readonly result?: Uint8Array | undefined;
  /** False when the sandbox itself could not be set up; then `stderr` holds the cause. */
  readonly started: boolean;
  /** Exit code of the command, or undefined when it was ended by a signal or never started. */
  readonly exitCode: number | undefined;
  /** Signal that ended the command, as far as is known. */
  readonly signal: string | undefined;
  /** The limit that the sandbox was ended for, or undefined when it was for none. */
  readonly exceeded: LimitReached | undefined;
  readonly usage: Usage;
  readonly stdout: CapturedOutput;
  readonly stderr: CapturedOutput;
}

/**
 * What a sandbox used. A member is undefined where nobody measured it: a short call can end between
 * two looks.
 */
export interface Usage {
  readonly wallMs: number;
  /** Processor time of all processes. */
  readonly cpuMs: number | undefined;
  /** The most that was held at once, as {@link LimitReached} counts memory. */
  readonly peakMemoryBytes: number | undefined;
  /** The most processes and threads at once. */
  readonly peakProcesses: number | undefined;
}

/** Who keeps each limit. */
export type Enforcement = Readonly<Record<LimitName, Mechanism>>;

/** A running command. */
export interface Execution {
  /**
   * Fulfils when the sandbox's last process is gone, or on its way out of the kernel, or as {@link
   * ExitReport.ending} says. Rejects with SandboxError when it cannot be killed, or was because
   * nobody could keep its limits any more.
   */
  readonly exited: Promise<ExitReport>;
  /** Undefined unless the launch has `hasStdin`. Its owner ends it. */
  readonly stdin: Writable | undefined;
  /**
   * The other end of the command's gateway; undefined unless the request has `hasGateway`. Paused
   * until its caller resumes it. The sandbox destroys it at the end of the execution.
   */
  readonly gateway: Duplex | undefined;
  /**
   * Output from the first byte when read from the start, else from the reported tail on. A command
   * waits for its reader; without one the output is dropped. It ends soon after `exited`.
   */
  readonly stdout: Readable;
  readonly stderr: Readable;
  /**
   * Asks the command to end (SIGTERM), kills everything after `graceMs`, and waits until the last
   * process is gone. Idempotent, but that a later call without a grace ends that of an earlier one.
   */
  stop(graceMs: number): Promise<ExitReport>;
  /**
   * Ends everything at once for a limit that somebody else watches; the report names it. The first
   * limit counts.
   */
  end(limit: LimitReached): void;
}

/**
 * What this host does not allow. `fresh-proc`: /proc is an empty directory inside, because a new
 * one cannot be mounted where the container masks its own. `seccomp`: there is no system-call
 * filter for this architecture. `resident-memory`: the kernel does not show what processes hold, so
 * nothing bounds it. `isolation`: nothing is kept apart, the command sees and reaches what its user
 * does on the host; that is so by the choice of backend. `held-files`: the worker may not look into
 * sandboxes, so the limits of disk and files count neither open deleted files nor those on
 * tmpfs. `host-name`: sandboxes see the host's name.
 */
export type Unenforced =
  "fresh-proc" | "seccomp" | "resident-memory" | "isolation" | "held-files" | "host-name";

/** What sandboxes of a profile are on this host, before there is one. */
export interface SandboxFacts {
  /** One line for the operator: technology and version. */
  readonly technology: string;
  readonly enforcement: Enforcement;
  /** What may be said of a sandbox, whatever else it is made for. */
  readonly unenforced: readonly Unenforced[];
  /**
   * What was tried on this host, and what came of it; empty for a technology that holds nothing.
   */
  readonly checks: readonly HostCheck[];
  /** Limits that the worker's own limits make tighter than the profile says. */
  readonly clamped: readonly LimitName[];
}

/**
 * One single-use sandbox. Disposing it kills what still runs and gives the work directory back for
 * removal.
 */
export interface Sandbox extends AsyncDisposable {
  /** Name of the backend in registry.ts. */
  readonly backend: string;
  readonly workDir: WorkDir;
  /** Those of its profile, or the worker's own where these are tighter. */
  readonly limits: Limits;
  readonly enforcement: Enforcement;
  readonly unenforced: readonly Unenforced[];
  /** Of a sandbox that was made with a network, once its command is let go. */
  readonly networkUsage?: NetworkUsage | undefined;
  /** Likewise. */
  readonly connections?: ConnectionLog | undefined;
  /**
   * Where the command connects to its gateway, once; undefined where it inherits {@link gatewayFd}
   * or has none.
   */
  readonly gatewayPath?: string | undefined;
  /**
   * What the command has to call {@link workDirInside}, the target of a mount, or a path below one.
   * It is the path itself wherever there are mounts. Command line and environment need not be put
   * through this.
   */
  locate(insidePath: string): string;
  /**
   * Starts the command. May be called once. Throws SandboxError when the sandbox program cannot be
   * spawned. A technology that takes long rejects with the signal's reason on abort; then the
   * command may have run.
   */
  start(launch: Launch, signal?: AbortSignal): Promise<Execution>;
}

/**
 * A sandbox whose command has loaded the tool and waits for its call. It is single-use as any
 * other. Disposing it kills what runs and gives the work directory back for removal.
 */
export interface ParkedSandbox extends Omit<Sandbox, "start"> {
  /** Fulfils when it ends, also before it was woken: then it is of no use. */
  readonly lost: Promise<void>;
  /** Bytes of memory that only this sandbox has, as they were when it was ready. */
  readonly privateBytes: number;
  /**
   * Has the command take its call. May be called once. Throws SandboxError when it has ended; then
   * the call may have started only where the error says so. Throws the signal's reason, which is
   * the only end of a wait for a command that does not read.
   *
   * @param args what `runner_args.json` would hold
   */
  wake(args: string, signal?: AbortSignal): Promise<Execution>;
}

/**
 * A process that has loaded a tool, from which sandboxes are made that need not load it again.
 * Disposing it ends it after the last of these sandboxes, and fulfils then.
 */
export interface Template extends AsyncDisposable {
  /** Fulfils when it ends. Sandboxes made from it may end with it. */
  readonly lost: Promise<void>;
  readonly privateBytes: number;
  /** Makes a sandbox; the caller owns it. Throws SandboxError; the signal's reason. */
  park(signal: AbortSignal): Promise<ParkedSandbox>;
}

/** What a technology can do before calls are there. */
export interface AheadOfCalls {
  /**
   * Makes a sandbox and starts a command in it that loads the tool and waits
   * (tool-runner/PROTOCOL.md, "Parked"). The caller owns it. Throws SandboxError; with `isUnfit`
   * when the command says that the tool cannot be made ready like that.
   */
  park(request: SandboxRequest, launch: Launch, signal: AbortSignal): Promise<ParkedSandbox>;
  /** Starts a template (tool-runner/PROTOCOL.md, "Templates"). Otherwise as `park`. */
  openTemplate(request: SandboxRequest, launch: Launch, signal: AbortSignal): Promise<Template>;
}

/**
 * A directory or file of the host in a form that sandboxes can mount. Disposed after the sandboxes
 * that mount it are gone.
 */
export interface SharedDirectory extends AsyncDisposable {
  readonly source: string;
}

/** What every technology is opened with. */
export interface BackendOptions {
  /** Directory for work directories (`SANDBOX_WORK_DIR`). */
  readonly workBase: string;
  /**
   * Directory below which processes with a `workBase` of their own have it, as the library's do:
   * containers that dead ones left are removed, too. Without it only those of `workBase` are.
   */
  readonly basesBelow?: string | undefined;
  /** Host uid and gid that sandboxes run as, or undefined for the worker's own. */
  readonly uid: number | undefined;
  readonly clock: Clock;
  readonly newId: NewId;
  /** Told of a work directory, or of a control group, that could not be removed. */
  onRemoveFailed(error: unknown): void;
  /**
   * Told each time that the process which ends the sandboxes of a dead worker has ended or cannot
   * be started again.
   */
  onGuardLost(error: unknown): void;
}

/** A sandbox technology. Its owner disposes it after the last sandbox is gone. */
export interface SandboxBackend extends AsyncDisposable {
  /** Directory for this process alone, which sandboxes can reach; removed with the backend. */
  readonly scratchDir: string;
  /** What sandboxes of this profile are on this host. */
  facts(profile: Profile): SandboxFacts;
  /** Makes a sandbox; the caller owns it. Throws SandboxError. */
  acquire(request: SandboxRequest, signal: AbortSignal): Promise<Sandbox>;
  /**
   * What it can do before calls are there for sandboxes of this profile; nothing, where the method
   * is missing.
   */
  aheadOf?(profile: Profile): AheadOfCalls | undefined;
  /**
   * Makes the present content of a directory, or of a file, mountable, by copying where it must.
   * Throws SandboxError.
   */
  share(path: string): Promise<SharedDirectory>;
}

/**
 * A failure of the sandbox technology or of the work directory. Its message may name host paths:
 * log it, do not send it.
 */
export class SandboxError extends Error {
  /** Name of the operator's setting that is wrong, such as `workDir`, when one is. */
  readonly setting: string | undefined;
  /**
   * Whether the tool cannot be made ready before its calls, however often it is tried: see {@link
   * AheadOfCalls}.
   */
  readonly isUnfit: boolean;
  /** Whether the network of the sandbox could not be made, so that it did not start. */
  readonly isEgress: boolean;

  constructor(
    message: string,
    options: {
      readonly cause?: unknown;
      readonly setting?: string;
      readonly isUnfit?: boolean;
      readonly isEgress?: boolean;
    } = {},
  ) {
    super(message, "cause" in options ? { cause: options.cause } : undefined);
    this.name = "SandboxError";
    this.setting = options.setting;
    this.isUnfit = options.isUnfit ?? false;
    this.isEgress = options.isEgress ?? false;
  }
}
