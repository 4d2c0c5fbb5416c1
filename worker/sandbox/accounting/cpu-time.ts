/**
 * Adds up the processor time of a sandbox over its life from looks at its living processes.
 */
import type { SeenProcess } from "./process-tree.ts";

/**
 * What processes have used, those that are gone included. A process that has ended and was waited
 * for is in its parent's account; one that nobody waits for is not, and stays with what was last
 * seen of it. So the sum is never too large, and too small by what processes used that nobody waits
 * for, between the last look at each and its end.
 */
export class CpuTotal {
  readonly #living = new Map<string, SeenProcess>();
  #lostMs = 0;
  #totalMs = 0;

  /** Milliseconds so far. */
  get totalMs(): number {
    return this.#totalMs;
  }

  /** Takes a look at all living processes. One that finds none changes nothing. */
  add(processes: readonly SeenProcess[]): void {
    if (processes.length === 0) return;
    let waitedForMs = 0;
    let livingMs = 0;
    const vanished = new Map(this.#living);
    this.#living.clear();
    for (const seen of processes) {
      const key = `${seen.pid} ${seen.startTicks}`;
      waitedForMs += seen.childrenMs - (vanished.get(key)?.childrenMs ?? 0);
      livingMs += totalOf(seen);
      vanished.delete(key);
      this.#living.set(key, seen);
    }
    const vanishedMs = [...vanished.values()].reduce((sum, seen) => sum + totalOf(seen), 0);
    this.#lostMs += Math.max(0, vanishedMs - waitedForMs);
    this.#totalMs = Math.max(this.#totalMs, livingMs + this.#lostMs);
  }
}

function totalOf({ ownMs, childrenMs }: SeenProcess): number {
  return ownMs + childrenMs;
}
