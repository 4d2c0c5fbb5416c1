/**
 * How a command is stopped, whatever it runs in: it is asked once, and killed when its grace is
 * over.
 */
import type { Clock } from "../support/clock.ts";
import { settlesWithin } from "../support/timeout.ts";
import type { ExitReport } from "./sandbox.ts";

/** A command that can be stopped. */
export interface Stoppable {
  readonly exited: Promise<ExitReport>;
  /** Fulfils when it is known, or given up to learn, whom signals have to go to. */
  started(): Promise<unknown>;
  /** Asks the command to end. */
  terminate(): void;
  /** Kills everything. */
  kill(): void;
}

/** The one stop of a command: see `Execution.stop`. */
export class Stopping {
  readonly #command: Stoppable;
  readonly #clock: Pick<Clock, "sleep">;
  readonly #graceOver = Promise.withResolvers<void>();
  #report: Promise<ExitReport> | undefined;

  constructor(command: Stoppable, clock: Pick<Clock, "sleep">) {
    this.#command = command;
    this.#clock = clock;
  }

  /** Whether anybody has asked for it. */
  get isAsked(): boolean {
    return this.#report !== undefined;
  }

  stop(graceMs: number): Promise<ExitReport> {
    if (graceMs === 0) this.#graceOver.resolve();
    this.#report ??= this.#stop(graceMs);
    return this.#report;
  }

  async #stop(graceMs: number): Promise<ExitReport> {
    const { exited } = this.#command;
    await this.#command.started();
    if (graceMs > 0) {
      this.#command.terminate();
      const over = Promise.race([exited, this.#graceOver.promise]);
      await settlesWithin(over, graceMs, this.#clock);
    }
    this.#command.kill();
    return exited;
  }
}
