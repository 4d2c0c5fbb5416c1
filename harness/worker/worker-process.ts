/**
 * Runs a real worker as a child process, with its own environment.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { Environment } from "../../worker/config/config.ts";
import { CommandError } from "../context.ts";
import { workerProgram } from "../package.ts";

/** Milliseconds from SIGTERM to SIGKILL beyond the time that the worker gives to running calls. */
const stopGraceMs = 10_000;
/** Last lines of its output for errors, and characters of each. */
const maxKeptLines = 20;
const maxKeptCharacters = 2_000;

/**
 * Options for a small process, as in the image: starting a program takes longer with more memory.
 * Less space for young objects and fewer malloc arenas halve it.
 */
export const leanMemory: Environment = {
  NODE_OPTIONS: "--max-semi-space-size=2",
  MALLOC_ARENA_MAX: "2",
};

/** Options of a worker's process. */
export interface WorkerProcessOptions {
  /** Receives each line of its output. */
  readonly onLine?: (line: string) => void;
  /** Receives the cause of an unexpected end: `exit code 1`, `SIGKILL`. */
  readonly onEnd?: (how: string) => void;
  /**
   * Milliseconds that the worker itself gives to running calls when it is stopped
   * (`DRAIN_TIMEOUT_SECONDS`).
   */
  readonly drainMs?: number;
}

/** A running worker. Disposing drains and stops it. */
export class WorkerProcess implements AsyncDisposable {
  /** Aborts after an unexpected end, with a CommandError that quotes the worker's last lines. */
  readonly ended: AbortSignal;
  readonly #child: ChildProcess;
  readonly #closed: Promise<void>;
  readonly #killAfterMs: number;
  readonly #lastLines: string[] = [];
  #isStopping = false;

  constructor(environment: Environment, options: WorkerProcessOptions = {}) {
    // In a session of its own: a terminal's Ctrl-C is for us, and the signal that we then send is
    // its first.
    const child = spawn(process.execPath, [workerProgram], {
      // What comes is read by programs, whatever the operator's own workers write.
      env: { ...leanMemory, ...environment, LOG_FORMAT: "json" },
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    });
    const ended = new AbortController();
    this.ended = ended.signal;
    this.#child = child;
    this.#killAfterMs = (options.drainMs ?? 0) + stopGraceMs;
    const take = (line: string): void => {
      this.#keep(line);
      options.onLine?.(line);
    };
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream }).on("line", take);
    }
    child.on("error", (error) => take(error.message));
    this.#closed = new Promise((resolve) => {
      child.on("close", (code, signal) => {
        const how = signal === null ? `exit code ${code}` : signal;
        if (!this.#isStopping) {
          ended.abort(this.failure(`the worker ended with ${how}`));
          options.onEnd?.(how);
        }
        resolve();
      });
    });
  }

  /** An error with a problem and the worker's last lines. */
  failure(problem: string): CommandError {
    const words = this.#lastLines.map((line) => `  ${line}`);
    return new CommandError([`${problem}; its last words:`, ...words].join("\n"));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isStopping = true;
    this.#child.kill("SIGTERM");
    const kill = setTimeout(() => this.#child.kill("SIGKILL"), this.#killAfterMs);
    await this.#closed;
    clearTimeout(kill);
  }

  #keep(line: string): void {
    this.#lastLines.push(line.slice(0, maxKeptCharacters));
    if (this.#lastLines.length > maxKeptLines) this.#lastLines.shift();
  }
}
