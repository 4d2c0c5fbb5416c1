/**
 * The real command line of the harness as a child process.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
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

/** Runs a command line to its end. */
export async function runCli(
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
  options: CliOptions = {},
): Promise<CliResult> {
  await using running = new CliProcess(args, environment, options);
  return await running.finished;
}
