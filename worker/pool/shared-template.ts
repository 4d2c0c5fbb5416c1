/**
 * A template that is used by those who make sandboxes from it and by the sandboxes made, and goes
 * with the last of them.
 */
import type { PreparedTool } from "../runners/runner.ts";
import type { Template } from "../sandbox/sandbox.ts";
import { type Origin, Waiting } from "./idle-sandbox.ts";

/** A live template. Whoever opened it retires it. */
export class SharedTemplate {
  readonly origin: Origin;
  readonly #template: Template;
  readonly #tool: PreparedTool;
  readonly #owned: AsyncDisposable;
  readonly #waiting = new Set<Waiting>();
  readonly #gone = Promise.withResolvers<void>();
  #users = 1;
  #isRetired = false;
  #isLost = false;

  /** @param owned the template, and what it was prepared with: disposed after the last sandbox */
  constructor(origin: Origin, template: Template, tool: PreparedTool, owned: AsyncDisposable) {
    this.origin = origin;
    this.#template = template;
    this.#tool = tool;
    this.#owned = owned;
    void this.lost.then(() => {
      this.#isLost = true;
      for (const waiting of this.#waiting) waiting.lose();
    });
  }

  /** Fulfils when it ends. */
  get lost(): Promise<void> {
    return this.#template.lost;
  }

  get isLost(): boolean {
    return this.#isLost;
  }

  get privateBytes(): number {
    return this.#template.privateBytes;
  }

  /** Makes a sandbox; the caller owns it. Throws SandboxError; the signal's reason. */
  async park(signal: AbortSignal): Promise<Waiting> {
    this.#users++;
    const parked = await this.#template.park(signal).catch((error: unknown) => {
      this.#leave();
      throw error;
    });
    const facts = { kind: "template", origin: this.origin, parked, tool: this.#tool } as const;
    const waiting: Waiting = new Waiting(facts, {
      [Symbol.asyncDispose]: async () => {
        if (!this.#waiting.delete(waiting)) return;
        try {
          await parked[Symbol.asyncDispose]();
        } finally {
          this.#leave();
        }
      },
    });
    this.#waiting.add(waiting);
    if (this.#isLost) waiting.lose();
    return waiting;
  }

  /** Ends it as soon as no sandbox needs it; fulfils when it has ended. May be called again. */
  retire(): Promise<void> {
    if (!this.#isRetired) this.#leave();
    this.#isRetired = true;
    return this.#gone.promise;
  }

  #leave(): void {
    if (--this.#users === 0) this.#gone.resolve(this.#owned[Symbol.asyncDispose]());
  }
}
