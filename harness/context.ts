/**
 * What every command gets from the process, how commands fail, and which exit codes they end with.
 */
import type { Environment } from "../worker/config/config.ts";
import type { Clock } from "../worker/support/clock.ts";
import type { Screen } from "./invoke/screen.ts";

/**
 * Exit codes of the program; a signal ends it with 128 and the signal's number, as a shell counts.
 */
export const exit = {
  success: 0,
  /** The tool, the worker or the broker failed. */
  failure: 1,
  /** The command line or the environment cannot be used. */
  usage: 2,
  /** Nobody answered in time, or the tool ran out of its time (as timeout(1)). */
  timedOut: 124,
} as const;

/** The process as commands see it. */
export interface Context {
  readonly environment: Environment;
  /** Standard output: results, and nothing else. */
  readonly out: Screen;
  /** Standard error: everything that is told while a command runs. */
  readonly err: Screen;
  /** Aborts with an Interruption when the program has to stop. */
  readonly signal: AbortSignal;
  readonly clock: Clock;
  /** Leaves Ctrl-C to the command that has the terminal, until disposed. */
  leaveInterrupts(): Disposable;
}

/** Why the program has to stop before it is done. */
export class Interruption extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode: number) {
    super(message);
    this.name = "Interruption";
    this.exitCode = exitCode;
  }
}

/** The command line or the environment cannot be used; the message says what would be accepted. */
export class UsageError extends Error {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = "UsageError";
  }
}

/** A command failed for a reason that its user can act on; the message is all that is told. */
export class CommandError extends Error {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = "CommandError";
  }
}
