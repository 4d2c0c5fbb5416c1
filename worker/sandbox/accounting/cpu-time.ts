/**
 * CPU time of a sandbox without a control group, from samples of its living processes.
 */
import type { ProcessSample } from "./process-tree.ts";

/**
 * Time of all processes, ended ones included. A reaped process counts with its parent, an unreaped
 * one as of its last sample: the sum is never too large.
 */
export class CpuTime {
  #living = new Map<string, ProcessSample>();
  #unreapedMs = 0;
  #totalMs = 0;

  /** Milliseconds so far. */
  get totalMs(): number {
    return this.#totalMs;
  }

  /** Adds a sample of all living processes. An empty one changes nothing. */
  add(processes: readonly ProcessSample[]): void {
    if (processes.length === 0) return;
    let reapedMs = 0;
    let livingMs = 0;
    const vanished = this.#living;
    this.#living = new Map();
    for (const sample of processes) {
      const key = `${sample.pid} ${sample.startTicks}`;
      reapedMs += sample.childrenMs - (vanished.get(key)?.childrenMs ?? 0);
      livingMs += totalOf(sample);
      vanished.delete(key);
      this.#living.set(key, sample);
    }
    const vanishedMs = [...vanished.values()].reduce((sum, sample) => sum + totalOf(sample), 0);
    this.#unreapedMs += Math.max(0, vanishedMs - reapedMs);
    this.#totalMs = Math.max(this.#totalMs, livingMs + this.#unreapedMs);
  }
}

function totalOf({ ownMs, childrenMs }: ProcessSample): number {
  return ownMs + childrenMs;
}
