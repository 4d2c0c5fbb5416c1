/**
 * The command line of the harness, in this process or as a child of it.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import { run } from "../../../harness/program.ts";
import type { ToolContext } from "../../../harness/tool/local-foundation.ts";
import { Screen } from "../../../harness/invoke/screen.ts";
import { systemClock } from "../../../worker/support/clock.ts";
import { programEnvironment } from "../../support/workers/program-environment.ts";
import { sharedPreparations } from "../../support/workers/shared-preparations.ts";

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
  /** Whether the test writes to its standard input, which is empty otherwise. */
  readonly hasInput?: boolean;
}

type Stream = "stdout" | "stderr";

/** A command that runs. */
abstract class RunningCli implements AsyncDisposable {
  abstract readonly finished: Promise<CliResult>;
  protected readonly texts: Record<Stream, string> = { stdout: "", stderr: "" };
  #changed = Promise.withResolvers<void>();
  #isFinished = false;

  /** Waits until the output holds the pattern, and returns the match. */
  async said(stream: Stream, pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const match = pattern.exec(this.texts[stream]);
      if (match) return match;
      if (this.#isFinished) {
        throw new Error(`ended without ${pattern}:\n${this.texts.stdout}\n${this.texts.stderr}`);
      }
      await this.#changed.promise;
    }
  }

  /** Everything it said on standard output so far. */
  get output(): string {
    return this.texts.stdout;
  }

  abstract [Symbol.asyncDispose](): Promise<void>;

  protected hear(stream: Stream, text: string): void {
    this.texts[stream] += text;
    this.#notify();
  }

  protected finish(exitCode: number | null): CliResult {
    this.#isFinished = true;
    this.#notify();
    return { exitCode, ...this.texts };
  }

  #notify(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }
}

/** A running process. Disposal kills it if it is still there. */
export class CliProcess extends RunningCli {
  readonly child: ChildProcess;
  readonly finished: Promise<CliResult>;

  constructor(
    args: readonly string[],
    environment: Readonly<Record<string, string>> = {},
    { cwd, command = [process.execPath, cli], isGroup = false, hasInput = false }: CliOptions = {},
  ) {
    super();
    const [program = "", ...before] = command;
    const child = spawn(program, [...before, ...args], {
      env: { ...programEnvironment(), ...environment },
      stdio: [hasInput ? "pipe" : "ignore", "pipe", "pipe"],
      detached: isGroup,
      ...(cwd !== undefined && { cwd }),
    });
    this.child = child;
    child.stdout?.setEncoding("utf8").on("data", (text: string) => this.hear("stdout", text));
    child.stderr?.setEncoding("utf8").on("data", (text: string) => this.hear("stderr", text));
    this.finished = new Promise((resolve) =>
      child.on("close", (exitCode) => resolve(this.finish(exitCode))),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.child.kill("SIGKILL");
    await this.finished;
  }
}

/**
 * A command that runs in this process, which costs less than one of its own. Disposal stops it if
 * it still runs.
 */
export class CliRun extends RunningCli {
  readonly finished: Promise<CliResult>;
  readonly #stopping = new AbortController();

  constructor(
    args: readonly string[],
    environment: Readonly<Record<string, string>> = {},
    input: Iterable<Buffer> | AsyncIterable<Buffer> = [],
  ) {
    super();
    const screen = (stream: Stream): Screen =>
      new Screen(new Capture((text) => this.hear(stream, text)));
    const context: ToolContext = {
      environment: { ...programEnvironment(), ...environment },
      out: screen("stdout"),
      err: screen("stderr"),
      signal: this.#stopping.signal,
      clock: systemClock,
      preparations: sharedPreparations,
      openInput: () => Readable.from(input, { objectMode: false }),
      leaveInterrupts: () => ({ [Symbol.dispose]: () => {} }),
    };
    this.finished = run(args, context).then((exitCode) => this.finish(exitCode));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort();
    await this.finished;
  }
}

/** What a command writes to one of its streams, which is no terminal. */
class Capture extends Writable {
  readonly #hear: (text: string) => void;

  constructor(hear: (text: string) => void) {
    super();
    this.#hear = hear;
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#hear(chunk.toString());
    done();
  }
}

/** Runs a command line to its end, in this process. */
export async function runCli(
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
  input: Iterable<Buffer> | AsyncIterable<Buffer> = [],
): Promise<CliResult> {
  return await new CliRun(args, environment, input).finished;
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
