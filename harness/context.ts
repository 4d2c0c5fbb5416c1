/**
 * The context of commands: process, errors and exit codes.
 */
import type { Readable } from "node:stream";
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
  /** The command line or the environment is not accepted. */
  usage: 2,
  /** No answer in time, or the tool reached its time limit (as timeout(1)). */
  timedOut: 124,
} as const;

/** The process of a command. */
export interface Context {
  readonly environment: Environment;
  /** Standard output: results only. */
  readonly out: Screen;
  /** Standard error: messages of a running command. */
  readonly err: Screen;
  /** Opens standard input, for the command that reads it. */
  openInput(): Readable;
  /** Aborts with an Interruption at a signal. */
  readonly signal: AbortSignal;
  readonly clock: Clock;
  /** Leaves Ctrl-C to the command that has the terminal, until disposed. */
  leaveInterrupts(): Disposable;
}

/** The signal that interrupts the program. */
export class Interruption extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode: number) {
    super(message);
    this.name = "Interruption";
    this.exitCode = exitCode;
  }
}

/** The command line or the environment is not accepted; the message says what would be. */
export class UsageError extends Error {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = "UsageError";
  }
}

/** A failure that the user can act on; only the message is shown. */
export class CommandError extends Error {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = "CommandError";
  }
}

/** The message of an error and of those behind it. */
export function withCauses(error: unknown): readonly string[] {
  return error instanceof Error ? [error.message, ...withCauses(error.cause)] : [];
}
