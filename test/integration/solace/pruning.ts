/**
 * `harness queues prune` in this process, whose time a test moves on.
 */
import { PassThrough } from "node:stream";
import { expect, vi } from "vitest";
import { run } from "../../../harness/program.ts";
import { Screen } from "../../../harness/screen.ts";
import { patience } from "../../support/patience.ts";
import { HandClock } from "../../unit/broker/hand-clock.ts";

/** What came of it. */
export interface Pruned {
  readonly exitCode: number;
  /** What it printed of the queues. */
  readonly lines: readonly string[];
  /** What it told meanwhile. */
  readonly told: string;
}

/** Begins when it is made. The test sees it to its end. */
export class Pruning {
  readonly #clock = new HandClock();
  readonly #out = new PassThrough({ encoding: "utf8" });
  readonly #err = new PassThrough({ encoding: "utf8" });
  #exitCode: number | undefined;

  /** With the command line behind `queues prune`. */
  constructor(args: readonly string[], environment: Record<string, string>) {
    void run(["queues", "prune", ...args], {
      environment,
      out: new Screen(this.#out as unknown as NodeJS.WriteStream),
      err: new Screen(this.#err as unknown as NodeJS.WriteStream),
      signal: new AbortController().signal,
      clock: this.#clock,
      leaveInterrupts: () => ({ [Symbol.dispose]() {} }),
    }).then((exitCode) => {
      this.#exitCode = exitCode;
    });
  }

  /** Milliseconds that it has slept, each time. */
  get slept(): readonly number[] {
    return this.#clock.slept;
  }

  /** Waits until it sleeps. */
  async asleep(): Promise<void> {
    await this.#still();
    expect(this.#clock.sleeping).toBe(1);
  }

  /** Waits until it sleeps, and wakes it when that is over. */
  async wake(): Promise<void> {
    await this.asleep();
    this.#clock.advance(this.#clock.slept.at(-1)!);
  }

  /** Lets it sleep as often as it wants to, until it has ended. */
  async end(): Promise<Pruned> {
    for (;;) {
      await this.#still();
      if (this.#exitCode === undefined) await this.wake();
      else return { exitCode: this.#exitCode, lines: this.#lines, told: this.#told };
    }
  }

  /** Waits until it sleeps or has ended. */
  async #still(): Promise<void> {
    const isStill = (): boolean => this.#exitCode !== undefined || this.#clock.sleeping > 0;
    await vi.waitFor(() => expect(isStill()).toBe(true), patience);
  }

  get #lines(): readonly string[] {
    return String(this.#out.read() ?? "")
      .trimEnd()
      .split("\n");
  }

  get #told(): string {
    return String(this.#err.read() ?? "");
  }
}
