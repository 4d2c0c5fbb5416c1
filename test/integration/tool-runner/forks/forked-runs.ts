/**
 * Runs of Python tools in forks of one process that has loaded the runner: see forked_runs.py.
 */
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, rm } from "node:fs/promises";
import { constants } from "node:os";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";

/** How a run ended, and what it printed. */
export interface Ended {
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

const driver = join(import.meta.dirname, "forked_runs.py");
// What the tests' modules are compiled to.
const cacheDir = join(import.meta.dirname, "../../../../node_modules/.cache/python");

/** One process, started by its first run, which makes one fork at a time. */
export class ForkedRuns {
  readonly #command: readonly string[];
  #process: ChildProcessByStdio<Writable, Readable, null> | undefined;
  /** Of the process, without an answer. */
  #gone: Promise<readonly Buffer[]> = Promise.resolve([]);

  constructor(python: string, runnerEntry: string) {
    this.#command = [python, "-I", "-X", `pycache_prefix=${cacheDir}`, driver, runnerEntry];
  }

  /** Runs the call that a file in this directory describes. */
  async run(dir: string, argsFile: string, env: NodeJS.ProcessEnv): Promise<Ended> {
    const [stdout, stderr] = [`${dir}.stdout`, `${dir}.stderr`];
    const { stdin, stdout: answers } = (this.#process ??= this.#start(env));
    stdin.write(JSON.stringify({ dir, argsFile, stdout, stderr }));
    const answered = once(answers, "data") as Promise<readonly Buffer[]>;
    const [answer] = await Promise.race([answered, this.#gone]);
    if (answer === undefined) throw new Error(`${driver} has ended`);
    const printed = await Promise.all([stdout, stderr].map((path) => readFile(path, "utf8")));
    await Promise.all([stdout, stderr].map((path) => rm(path)));
    return { ...endOf(Number(answer)), stdout: printed[0]!, stderr: printed[1]! };
  }

  /** Ends the process; the next run starts another. */
  end(): void {
    this.#process?.stdin.end();
    this.#process = undefined;
  }

  #start(env: NodeJS.ProcessEnv) {
    const [program = "", ...argv] = this.#command;
    const child = spawn(program, argv, { env, stdio: ["pipe", "pipe", "inherit"] });
    this.#gone = once(child, "exit").then(() => []);
    return child;
  }
}

/** What a wait status says (wait(2)). */
function endOf(status: number): Pick<Ended, "exitCode" | "signal"> {
  const number = status & 0x7f;
  if (number === 0) return { exitCode: status >> 8, signal: null };
  const [name] = Object.entries(constants.signals).find(([, value]) => value === number) ?? [];
  return { exitCode: null, signal: name as NodeJS.Signals };
}
