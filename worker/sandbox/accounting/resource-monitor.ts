/**
 * Samples the usage of all sandboxes, for the limits that the kernel does not keep.
 */

/** Milliseconds between two samples of a sandbox. */
export const sampleMs = 20;
/** The same of an idle sandbox. */
export const idleSampleMs = 1_000;
/**
 * Milliseconds before the first sample of a sandbox whose memory the kernel bounds: most calls are
 * over by then.
 */
export const firstSampleMs = 100;
/**
 * Least pause after a round of samples, in lengths of the round: sampling takes a fifth of the
 * worker's CPU time at most, half while a walk is urgent.
 */
const pauses = { usual: 4, urgent: 1 };
/** Milliseconds of a round for the files of all sandboxes; long walks continue with the next. */
const filesMs = 4;
/** Milliseconds more for walks that are urgent, for all of them together. */
const urgentWalkMs = 16;

/** A sandbox that is sampled. */
export interface Sampled {
  /** Whether there is nothing to sample any more. */
  readonly isOver: boolean;
  /** Whether its work directory may have grown beyond its limits during a long walk. */
  readonly isUrgent: boolean;
  /** @param walkMs for the walk through the work directory, besides `filesMs` for all its files */
  sample(filesMs: number, walkMs: number): void;
}

/** Between two samples a sandbox can exceed its limits: docs/sandbox.md has measurements. */
export class ResourceMonitor {
  readonly #active = new Set<Sampled>();
  /** The least recently sampled one comes first. */
  readonly #idle = new Set<Sampled>();
  /** Those that are not sampled yet, and when they will be. */
  readonly #later = new Map<Sampled, number>();
  readonly #onSampled: () => void;
  #timer: NodeJS.Timeout | undefined;
  #timerDueMs = 0;
  #idleDueMs = 0;
  #restUntilMs = 0;
  #turn: Promise<void> = Promise.resolve();

  /** @param onSampled called after each round; it must not throw */
  constructor(onSampled: () => void = () => undefined) {
    this.#onSampled = onSampled;
  }

  /** Samples a sandbox every {@link sampleMs} until it is removed. */
  watch(sandbox: Sampled): void {
    this.remove(sandbox);
    this.#active.add(sandbox);
    this.#schedule();
  }

  /** The same, from {@link firstSampleMs} on, or as soon as it is urgent. */
  watchLater(sandbox: Sampled): void {
    this.remove(sandbox);
    this.#later.set(sandbox, performance.now() + firstSampleMs);
    this.#schedule();
  }

  /** Samples a sandbox every {@link idleSampleMs} until it is watched or removed. */
  watchIdle(sandbox: Sampled): void {
    this.remove(sandbox);
    if (sandbox.isOver) return;
    this.#idle.add(sandbox);
    this.#schedule();
  }

  remove(sandbox: Sampled): void {
    this.#active.delete(sandbox);
    this.#idle.delete(sandbox);
    this.#later.delete(sandbox);
  }

  /** Runs a task when those before it have ended, so that few threads are busy. */
  inTurn(task: () => Promise<void>): Promise<void> {
    return (this.#turn = this.#turn.then(task));
  }

  #schedule(): void {
    const soon = this.#active.size + this.#later.size;
    if (soon + this.#idle.size === 0) return;
    const nowMs = performance.now();
    const delayMs = soon > 0 ? sampleMs : idleSampleMs / this.#idle.size;
    const dueMs = Math.max(nowMs + delayMs, this.#restUntilMs);
    if (this.#timer !== undefined && this.#timerDueMs <= dueMs) return;
    clearTimeout(this.#timer);
    this.#timerDueMs = dueMs;
    this.#timer = setTimeout(() => this.#sampleAll(), dueMs - nowMs).unref();
  }

  #sampleAll(): void {
    const startMs = ownCpuMs();
    for (const [sandbox, dueMs] of this.#later)
      if (performance.now() >= dueMs || sandbox.isUrgent) this.watch(sandbox);
    const urgent = new Set([...this.#active].filter(({ isUrgent }) => isUrgent));
    for (const sandbox of this.#active) {
      const walkMs = urgent.has(sandbox) ? urgentWalkMs / urgent.size : 0;
      sandbox.sample(filesMs / this.#active.size, walkMs);
      if (sandbox.isOver) this.#active.delete(sandbox);
    }
    this.#sampleOneIdle();
    const pause = urgent.size > 0 ? pauses.urgent : pauses.usual;
    this.#restUntilMs = performance.now() + pause * (ownCpuMs() - startMs);
    this.#timer = undefined;
    this.#schedule();
    this.#onSampled();
  }

  /** One at a time, so that many delay no other work. */
  #sampleOneIdle(): void {
    const [sandbox] = this.#idle;
    // Timers can be a millisecond early.
    if (sandbox === undefined || performance.now() + 1 < this.#idleDueMs) return;
    this.#idle.delete(sandbox);
    sandbox.sample(filesMs, urgentWalkMs);
    if (!sandbox.isOver) this.#idle.add(sandbox);
    this.#idleDueMs = performance.now() + idleSampleMs / Math.max(1, this.#idle.size);
  }
}

/** CPU time, so that a tool that keeps all CPUs busy is not sampled less often. */
function ownCpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
