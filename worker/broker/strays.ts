/**
 * Calls of tools that a worker does not serve any more, which come into its own queue: a tool was taken out of the manifest
 * while the worker was not connected.
 */
import type { BrokerLog } from "./log.ts";

/** Tools that are kept out at most, of those that a session comes to know; an operator may have every call come into a queue. */
const maxTools = 1_000;

/** What has strays kept out. */
export interface StraysParts {
  readonly isServed: (toolName: string) => boolean;
  readonly log: BrokerLog;
  /** Aborts with the session. */
  readonly ended: AbortSignal;
}

/** Those of one session. */
export class Strays {
  readonly #parts: StraysParts;
  readonly #known = new Set<string>();

  constructor(parts: StraysParts) {
    this.#parts = parts;
  }

  /** A tool was left: what still comes of it was on its way. */
  expect(tool: string): void {
    this.#known.add(tool);
  }

  /**
   * A call of a tool came out of a queue. The first of one that is not served has `keepOut` asked that no more come, which
   * throws when the broker refuses that, or when the signal aborts.
   */
  notice(tool: string, queue: string, keepOut: (signal: AbortSignal) => Promise<void>): void {
    if (this.#parts.isServed(tool) || this.#known.has(tool)) return;
    if (this.#known.size >= maxTools) return;
    this.#known.add(tool);
    void this.#tell({ queue, tool }, keepOut);
  }

  /** Never rejects. */
  async #tell(facts: object, keepOut: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const { log, ended } = this.#parts;
    try {
      await keepOut(ended);
      log.info(facts, "calls of a tool that is not served come into the queue no more");
    } catch (error) {
      if (ended.aborted) return;
      const refused = { ...facts, err: error };
      log.warn(refused, "calls of a tool that is not served go on coming into the queue");
    }
  }
}
