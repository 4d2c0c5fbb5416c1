/**
 * The command line of the harness, in this process or as a child of it.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import { run } from "../../../harness/program.ts";
import { Screen } from "../../../harness/screen.ts";
import { systemClock } from "../../../worker/support/clock.ts";
import { programEnvironment } from "../../support/program-environment.ts";

const cli = fileURLToPath(new URL("../../../harness/cli.ts", import.meta.url));

/** What a finished process left. */
export interface CliResult {
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Where and how a command is run. */
export interface CliOptions {
  readonly cwd?: string;
  /** The program; the harness of this checkout unless given. */
  readonly command?: readonly string[];
  /** Whether it leads a process group of its own, as a shell's command does. */
  readonly isGroup?: boolean;
}

/** A running process. Disposal kills it if it is still there. */
export class CliProcess implements AsyncDisposable {
  readonly child: ChildProcess;
  readonly finished: Promise<CliResult>;
  #stdout = "";
  #stderr = "";
  #changed = Promise.withResolvers<void>();
  #isFinished = false;

  constructor(
    args: readonly string[],
    environment: Readonly<Record<string, string>> = {},
    { cwd, command = [process.execPath, cli], isGroup = false }: CliOptions = {},
  ) {
    const [program = "", ...before] = command;
    const child = spawn(program, [...before, ...args], {
      env: { ...programEnvironment(), ...environment },
      stdio: ["ignore", "pipe", "pipe"],
      detached: isGroup,
      ...(cwd !== undefined && { cwd }),
    });
    this.child = child;
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      this.#stdout += text;
      this.#notify();
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      this.#stderr += text;
      this.#notify();
    });
    this.finished = new Promise((resolve) =>
      child.on("close", (exitCode) => {
        this.#isFinished = true;
        this.#notify();
        resolve({ exitCode, stdout: this.#stdout, stderr: this.#stderr });
      }),
    );
  }

  /** Waits until the output holds the pattern, and returns the match. */
  async said(stream: "stdout" | "stderr", pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const match = pattern.exec(stream === "stdout" ? this.#stdout : this.#stderr);
      if (match) return match;
      if (this.#isFinished) {
        throw new Error(`ended without ${pattern}:\n${this.#stdout}\n${this.#stderr}`);
      }
      await this.#changed.promise;
    }
  }

  /** Everything it said on standard output so far. */
  get output(): string {
    return this.#stdout;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.child.kill("SIGKILL");
    await this.finished;
  }

  #notify(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }
}

/** What a command writes to one of its streams, which is no terminal. */
class Capture extends Writable {
  text = "";

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.text += chunk.toString();
    done();
  }
}

/** Runs a command line to its end, in this process. */
export async function runCli(
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<CliResult> {
  const stdout = new Capture();
  const stderr = new Capture();
  const exitCode = await run(args, {
    environment: { ...programEnvironment(), ...environment },
    out: new Screen(stdout),
    err: new Screen(stderr),
    signal: new AbortController().signal,
    clock: systemClock,
    leaveInterrupts: () => ({ [Symbol.dispose]: () => {} }),
  });
  return { exitCode, stdout: stdout.text, stderr: stderr.text };
}

/** Runs a command line to its end, in a process of its own. */
export async function runCliProcess(
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
  options: CliOptions = {},
): Promise<CliResult> {
  await using running = new CliProcess(args, environment, options);
  return await running.finished;
}
