/**
 * A real worker in a process of its own, for what only a process shows: signals, exit codes,
 * output.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { programEnvironment } from "./program-environment.ts";

const entry = fileURLToPath(new URL("../../../worker/main.ts", import.meta.url));

export interface WorkerExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A worker process. Disposing kills it. */
export class WorkerProcess implements AsyncDisposable {
  readonly child: ChildProcess;
  readonly exited: Promise<WorkerExit>;
  #output = "";

  /**
   * @param prefix command line that is to run the worker, such as `["setpriv", "--reuid", "1000"]`
   */
  constructor(
    environment: Readonly<Record<string, string>>,
    argv: readonly string[] = [],
    prefix: readonly string[] = [],
  ) {
    const command = [...prefix, process.execPath, entry, ...argv];
    this.child = spawn(command[0]!, command.slice(1), {
      // Sandboxes wait for calls only where a test asks for it.
      env: { ...programEnvironment(), WARM_MAX_MEMORY_MB: "0", ...environment },
      stdio: ["ignore", "pipe", "pipe"],
    });
    for (const stream of [this.child.stdout, this.child.stderr]) {
      stream?.on("data", (chunk: Buffer) => (this.#output += chunk.toString()));
    }
    this.exited = once(this.child, "close").then(([code, signal]) => ({ code, signal }));
  }

  /** Everything on stdout and stderr so far. */
  get output(): string {
    return this.#output;
  }

  /** Waits until the worker has said `text`. Rejects with its output when it ended before. */
  async says(text: string): Promise<void> {
    const spoken = Promise.withResolvers<void>();
    const look = (): void => void (this.#output.includes(text) && spoken.resolve());
    this.child.stdout?.on("data", look);
    look();
    await Promise.race([
      spoken.promise,
      this.exited.then((exit) => {
        if (!this.#output.includes(text))
          throw new Error(`ended ${JSON.stringify(exit)}: ${this.#output}`);
      }),
    ]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.child.kill("SIGKILL");
    await this.exited;
  }
}
