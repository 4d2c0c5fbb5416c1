/**
 * A sandbox of bubblewrap's whose command has loaded the tool and waits for its call.
 */
import type { Limits } from "../../protocol/resource-limits.ts";
import {
  type Enforcement,
  type Execution,
  type ParkedSandbox,
  type Sandbox,
  SandboxError,
  type Unenforced,
} from "../sandbox.ts";
import type { WorkDir } from "../work/work-dir.ts";
import type { WaitingCommand } from "./cold-sandbox.ts";

/** A sandbox with its command in it. It owns the sandbox. */
export class BubblewrapParked implements ParkedSandbox {
  readonly backend = "bubblewrap";
  readonly lost: Promise<void>;
  readonly privateBytes: number;
  readonly #sandbox: Omit<Sandbox, "start">;
  readonly #command: WaitingCommand;
  #isLost = false;
  #isWoken = false;

  constructor(sandbox: Omit<Sandbox, "start">, command: WaitingCommand, privateBytes: number) {
    this.#sandbox = sandbox;
    this.#command = command;
    this.privateBytes = privateBytes;
    const end = (): void => void (this.#isLost = true);
    this.lost = command.execution.exited.then(end, end);
  }

  get workDir(): WorkDir {
    return this.#sandbox.workDir;
  }

  get limits(): Limits {
    return this.#sandbox.limits;
  }

  get enforcement(): Enforcement {
    return this.#sandbox.enforcement;
  }

  get unenforced(): readonly Unenforced[] {
    return this.#sandbox.unenforced;
  }

  locate(insidePath: string): string {
    return this.#sandbox.locate(insidePath);
  }

  async wake(): Promise<Execution> {
    if (this.#isWoken) throw new SandboxError("a parked sandbox is woken once");
    this.#isWoken = true;
    if (this.#isLost) throw new SandboxError("a parked sandbox has ended");
    const { execution, channel } = this.#command;
    execution.beginCall(this.workDir.staged());
    await channel.call();
    return execution;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#command.channel[Symbol.dispose]();
    await this.#sandbox[Symbol.asyncDispose]();
  }
}
