/**
 * A far side in a process of its own.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { expect, vi } from "vitest";
import type { ServeOptions } from "../../../worker/runtime/service/options.ts";
import { patience } from "../patience.ts";
import { programEnvironment } from "../workers/program-environment.ts";

const entry = fileURLToPath(new URL("serve.ts", import.meta.url));
const caller = fileURLToPath(new URL("call.ts", import.meta.url));

/** Disposing kills it. */
export class ServedProcess implements AsyncDisposable {
  readonly child: ChildProcess;
  readonly exited: Promise<unknown>;
  #output = "";

  private constructor(options: Partial<ServeOptions>) {
    const argv = [entry, JSON.stringify(options)];
    const stdio = ["ignore", "pipe", "pipe"] as const;
    this.child = spawn(process.execPath, argv, { env: programEnvironment(), stdio: [...stdio] });
    for (const stream of [this.child.stdout, this.child.stderr])
      stream?.on("data", (chunk: Buffer) => (this.#output += chunk.toString()));
    this.exited = once(this.child, "close");
  }

  static async start(options: Partial<ServeOptions> = {}): Promise<ServedProcess> {
    const served = new ServedProcess(options);
    await served.says(/^port \d+$/m);
    return served;
  }

  get url(): string {
    return `ws://127.0.0.1:${/^port (\d+)$/m.exec(this.#output)?.[1]}`;
  }

  async says(line: RegExp): Promise<void> {
    await vi.waitFor(() => expect(this.#output).toMatch(line), patience);
  }

  /** How often it said a line. */
  count(line: string): number {
    return this.#output.split("\n").filter((each) => each === line).length;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.child.kill("SIGKILL");
    await this.exited;
  }
}

/** A caller in a process of its own. Disposing kills it. */
export class CallingProcess implements AsyncDisposable {
  readonly child: ChildProcess;
  readonly #exited: Promise<unknown>;

  constructor(url: string, code: string) {
    const argv = [caller, url, code];
    this.child = spawn(process.execPath, argv, { env: programEnvironment(), stdio: "ignore" });
    this.#exited = once(this.child, "close");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.child.kill("SIGKILL");
    await this.#exited;
  }
}
