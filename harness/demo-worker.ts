/**
 * A real worker as a child process, with an environment of its own.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { Environment } from "../worker/config.ts";
import { CommandError } from "./context.ts";
import { workerProgram } from "./package.ts";

/** Milliseconds from SIGTERM to SIGKILL. */
const stopGraceMs = 10_000;
/** Lines of its output that are kept for the case that it fails, and characters of each. */
const maxKeptLines = 20;
const maxKeptCharacters = 2_000;

/** A running worker. Its owner disposes it, which drains and stops it. */
export class DemoWorker implements AsyncDisposable {
  /** Aborts with a CommandError, which quotes the worker's last words, when the worker ended without being asked. */
  readonly ended: AbortSignal;
  readonly #child: ChildProcess;
  readonly #closed: Promise<void>;
  readonly #lastLines: string[] = [];
  #isStopping = false;

  constructor(environment: Environment) {
    const child = spawn(process.execPath, [workerProgram], {
      env: { ...environment },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const ended = new AbortController();
    this.ended = ended.signal;
    this.#child = child;
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream }).on("line", (line) => this.#keep(line));
    }
    child.on("error", (error) => this.#keep(error.message));
    this.#closed = new Promise((resolve) => {
      child.on("close", (code, signal) => {
        const how = signal === null ? `exit code ${code}` : signal;
        if (!this.#isStopping) ended.abort(this.failure(`the worker ended with ${how}`));
        resolve();
      });
    });
  }

  /** An error that says what is wrong and what the worker said last. */
  failure(problem: string): CommandError {
    const words = this.#lastLines.map((line) => `  ${line}`);
    return new CommandError([`${problem}; its last words:`, ...words].join("\n"));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isStopping = true;
    this.#child.kill("SIGTERM");
    const kill = setTimeout(() => this.#child.kill("SIGKILL"), stopGraceMs);
    await this.#closed;
    clearTimeout(kill);
  }

  #keep(line: string): void {
    this.#lastLines.push(line.slice(0, maxKeptCharacters));
    if (this.#lastLines.length > maxKeptLines) this.#lastLines.shift();
  }
}
