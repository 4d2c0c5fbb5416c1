/**
 * A process of its own that uses the library, and can be killed.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { programEnvironment } from "../workers/program-environment.ts";

const entry = fileURLToPath(new URL("hold.ts", import.meta.url));

/** Code that runs until it is ended. */
const goesOn = `
import time
await tools.call("test:runs", {})
time.sleep(86400)`;

/** Backends that such a process can open. */
export type HeldKind = "bubblewrap" | "docker" | "containerd" | "gvisor";

export interface HoldingOptions {
  readonly kind: HeldKind;
  readonly variables: Readonly<Record<string, string>>;
  /** `TMPDIR`, for processes that are to find each other. */
  readonly temporary: string;
}

/** Disposing kills it. */
export class HoldingProcess implements AsyncDisposable {
  readonly child: ChildProcess;
  readonly #exited: Promise<unknown>;
  #output = "";

  private constructor({ kind, variables, temporary }: HoldingOptions, code: string) {
    const argv = [entry, kind, JSON.stringify(variables), code];
    const env = { ...programEnvironment(), TMPDIR: temporary };
    this.child = spawn(process.execPath, argv, { env, stdio: ["ignore", "pipe", "pipe"] });
    for (const stream of [this.child.stdout, this.child.stderr])
      stream?.setEncoding("utf8").on("data", (text: string) => (this.#output += text));
    this.#exited = once(this.child, "close");
  }

  /** One whose code runs, and goes on. */
  static async running(options: HoldingOptions): Promise<HoldingProcess> {
    const started = new HoldingProcess(options, goesOn);
    await started.#says("runs\n");
    return started;
  }

  /** Opens the backend and closes it again. Returns what the process said. */
  static async openOnce(options: HoldingOptions): Promise<string> {
    await using started = new HoldingProcess(options, "");
    await started.#exited;
    return started.#output;
  }

  /** Stands between other words of paths of what it started. */
  get marker(): string {
    return `/${this.child.pid}-`;
  }

  async kill(): Promise<void> {
    this.child.kill("SIGKILL");
    await this.#exited;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }

  async #says(text: string): Promise<void> {
    const ended = this.#exited.then(() => Promise.reject(new Error(this.#output)));
    const said = Promise.withResolvers<void>();
    const look = (): void => void (this.#output.includes(text) && said.resolve());
    this.child.stdout?.on("data", look);
    look();
    await Promise.race([said.promise, ended]);
  }
}
