/**
 * A sandbox that waits for its call.
 */
import type { PreparedTool } from "../runners/runner.ts";
import type { IdleStartMode } from "../sandbox/profile.ts";
import type { ParkedSandbox } from "../sandbox/sandbox.ts";

/**
 * What the sandboxes of a tool were made from. Sandboxes made from the same can stand for each
 * other.
 */
export interface Origin {
  /** Of the code; see CodeVersions. */
  readonly version: number;
  /** Of its parts of the host; see hostState. */
  readonly host: string | undefined;
}

/** The same origin. */
export function isSame(a: Origin, b: Origin): boolean {
  return a.version === b.version && a.host === b.host;
}

/** A parked sandbox with everything that was made for it, which goes with it. */
export class Waiting implements AsyncDisposable {
  readonly kind: IdleStartMode;
  readonly origin: Origin;
  readonly parked: ParkedSandbox;
  readonly tool: PreparedTool;
  readonly #owned: AsyncDisposable;
  #isLost = false;
  #onLost: () => void = () => undefined;

  constructor(facts: Pick<Waiting, "kind" | "origin" | "parked" | "tool">, owned: AsyncDisposable) {
    this.kind = facts.kind;
    this.origin = facts.origin;
    this.parked = facts.parked;
    this.tool = facts.tool;
    this.#owned = owned;
    void this.parked.lost.then(() => this.lose());
  }

  /** Whether it is of no use any more. */
  get isLost(): boolean {
    return this.#isLost;
  }

  /** Tells whoever keeps it, instead of the one before, when it is of no use any more. */
  onLost(listener: () => void): void {
    this.#onLost = listener;
  }

  /** It, or what it was made from, ended. */
  lose(): void {
    if (this.#isLost) return;
    this.#isLost = true;
    this.#onLost();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#owned[Symbol.asyncDispose]();
  }
}
