/**
 * The contract of how a call gets its sandbox.
 */
import type { ToolEntry } from "../manifest/manifest.ts";
import type { StartKind } from "../protocol/execution.ts";
import type { PreparedTool } from "../runners/runner.ts";
import type { IdleStartMode, Profile } from "../sandbox/profile.ts";
import type { Execution, Sandbox } from "../sandbox/sandbox.ts";

/**
 * A sandbox for one call of a tool, without anything of the call. Disposing it kills its processes
 * and releases the rest.
 */
export interface ToolSandbox extends AsyncDisposable {
  readonly startMode: StartKind;
  readonly sandbox: Omit<Sandbox, "start" | typeof Symbol.asyncDispose>;
  readonly tool: Pick<PreparedTool, "toolsPath" | "boundReached">;
  /**
   * Runs the call. Call it once. Otherwise as `Sandbox.start`.
   *
   * @param args what `runner_args.json` holds
   */
  start(args: string, signal?: AbortSignal): Promise<Execution>;
}

/** The idle sandboxes of one tool under one profile, for logs and measurements. */
export interface PoolStats {
  readonly tool: string;
  readonly profile: string;
  /** How its sandboxes are made now; undefined when its calls start cold. */
  readonly startMode: IdleStartMode | undefined;
  readonly hasTemplate: boolean;
  readonly idle: number;
  readonly making: number;
  readonly target: number;
  /** Calls that took an idle sandbox. */
  readonly hits: number;
  /** Calls that found none. */
  readonly misses: number;
  /** Sandboxes that were made to be idle. */
  readonly refills: number;
  /** Bytes of memory of the idle sandboxes and the template. */
  readonly privateBytes: number;
  /** Undefined when the last attempt to make a sandbox succeeded. */
  readonly failure: IdleFailure | undefined;
}

/** Failed attempts to make an idle sandbox, in a row. */
export interface IdleFailure {
  readonly attempts: number;
  /** Of the last attempt; for the log and the doctor, not for callers. */
  readonly error: unknown;
}

/**
 * Gives calls sandboxes with the present code of the present entry. Its owner disposes it after the
 * last call, and before the backend and the runners.
 */
export interface Starts extends AsyncDisposable {
  /** Of each tool with a pool. */
  readonly stats: readonly PoolStats[];
  /**
   * A sandbox for one call; the caller owns it. Throws SandboxError; NotGrantedError for a tool
   * that may not have its parts of the host any more; the signal's reason.
   */
  acquire(tool: ToolEntry, profile: Profile, signal: AbortSignal): Promise<ToolSandbox>;
  /**
   * Call with all served tools, at the start and after each change of them or of their packages.
   * Drops the pools of others.
   */
  follow(tools: Iterable<ToolEntry>): void;
  /**
   * Disposes resources of a call whose sandbox is ending, in the background: an answer does not
   * wait for it, the disposal of the starts does.
   */
  disposeLater(resources: AsyncDisposable): void;
  /** Call when draining: stops the creation of idle sandboxes. */
  drain(): void;
}
