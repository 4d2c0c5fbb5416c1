/**
 * The contract of how a call comes to its sandbox: with its tool in it, made when the call comes or
 * before.
 */
import type { ToolEntry } from "../manifest/manifest.ts";
import type { StartKind } from "../protocol/execution.ts";
import type { PreparedTool } from "../runners/runner.ts";
import type { IdleStartMode, Profile } from "../sandbox/profile.ts";
import type { Execution, Sandbox } from "../sandbox/sandbox.ts";

/**
 * A sandbox for one call of a tool, with nothing of the call in it. Disposing it kills what runs
 * and gives everything back.
 */
export interface ToolSandbox extends AsyncDisposable {
  readonly kind: StartKind;
  readonly sandbox: Omit<Sandbox, "start" | typeof Symbol.asyncDispose>;
  readonly tool: Pick<PreparedTool, "toolsPath" | "boundReached">;
  /**
   * Has the tool take the call that lies in the work directory. May be called once. Throws
   * SandboxError.
   */
  start(): Promise<Execution>;
}

/**
 * What is going on with the waiting sandboxes of one tool under one profile, for logs and
 * measurements.
 */
export interface PoolStats {
  readonly tool: string;
  readonly profile: string;
  /** How its sandboxes are made now; undefined when they cannot be before their calls. */
  readonly startMode: IdleStartMode | undefined;
  readonly hasTemplate: boolean;
  readonly waiting: number;
  readonly making: number;
  readonly target: number;
  /** Calls that took one which waited. */
  readonly hits: number;
  /** Calls for which none waited. */
  readonly misses: number;
  /** Bytes of memory of those that wait, and of the template. */
  readonly privateBytes: number;
  /** Why sandboxes cannot be made now; undefined when the last attempt succeeded. */
  readonly failure: WarmFailure | undefined;
}

/** Failed attempts to make a sandbox before its call, in a row. */
export interface WarmFailure {
  readonly attempts: number;
  /** Of the last attempt; for the log and the doctor, not for callers. */
  readonly error: unknown;
}

/**
 * Where sandboxes for calls come from. Calls always get the present code of the present entry. Its
 * owner disposes it after the last call, and before the backend and the runners.
 */
export interface Starts extends AsyncDisposable {
  /** Of each tool that was called or has sandboxes that wait; nothing where none ever does. */
  readonly stats: readonly PoolStats[];
  /**
   * A sandbox for one call; the caller owns it. Throws SandboxError; NotGrantedError for a tool
   * that may not have what it needs of the host any more; the signal's reason.
   */
  acquire(tool: ToolEntry, profile: Profile, signal: AbortSignal): Promise<ToolSandbox>;
  /**
   * To be called with all tools that are served, at the start and whenever they change. What is not
   * among them is given up.
   */
  follow(tools: Iterable<ToolEntry>): void;
  /**
   * To be called when no more calls will come than are there: from then on nothing is made before
   * its call.
   */
  drain(): void;
}
