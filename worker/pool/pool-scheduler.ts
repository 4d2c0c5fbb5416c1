/**
 * Decides when waiting sandboxes are made and given back: a few at once, after the calls that run,
 * within the memory that all may take.
 */
import type { Clock } from "../support/clock.ts";
import type { ToolPool } from "./tool-pool.ts";
import { allocate } from "./sizing.ts";

/**
 * Milliseconds between two looks at what waits, when nothing else happens: what is idle is given
 * back by these.
 */
export const tendEveryMs = 5_000;

/** Made once: an error costs more than all else here. */
const calledOff = new Error("the alarm was called off");

/** What is decided by. */
export interface RefillOptions {
  /** All there are now. */
  readonly pools: () => Iterable<ToolPool>;
  /** Bytes of memory for all that waits, with templates. */
  readonly maxBytes: number;
  /**
   * Processors: so many calls at once leave none for refills, and so many refills are made at once.
   */
  readonly cpus: number;
  readonly clock: Clock;
}

/** Keeps pools as full as they should be. Its owner disposes it after the last call. */
export class PoolScheduler implements AsyncDisposable {
  readonly #options: RefillOptions;
  readonly #making = new Set<Promise<void>>();
  #running = 0;
  #isStirred = false;
  #isClosed = false;
  /** When it looks by itself, on the monotonic clock, and what calls that off. */
  #alarm = { atMs: Infinity, off: new AbortController() };

  constructor(options: RefillOptions) {
    this.#options = options;
  }

  /** A call that needs a processor until the answer is disposed. */
  run(): Disposable {
    this.#running++;
    return {
      [Symbol.dispose]: () => {
        this.#running--;
        this.stir();
      },
    };
  }

  /** Looks at all pools soon: what happens at once is one reason. */
  stir(): void {
    if (this.#isStirred || this.#isClosed) return;
    this.#isStirred = true;
    setImmediate(() => {
      this.#isStirred = false;
      if (!this.#isClosed) this.#look();
    });
  }

  /** Looks at all pools within a time, if nothing has it look before. */
  stirWithin(ms: number): void {
    if (!this.#isClosed) this.#lookAt(this.#options.clock.monotonicMs() + ms);
  }

  /** Begins nothing more. */
  close(): void {
    this.#isClosed = true;
    this.#alarm.off.abort(calledOff);
  }

  /**
   * Begins nothing more, and waits for what is being made: the pools are to be retired before.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
    await Promise.all(this.#making);
  }

  #look(): void {
    const pools = [...this.#options.pools()];
    const targets = allocate(
      pools.map((pool) => pool.request()),
      this.#options.maxBytes,
    );
    for (const [index, pool] of pools.entries()) pool.settle(targets[index] ?? 0);
    const nowMs = this.#options.clock.monotonicMs();
    while (this.#making.size < this.#options.cpus) {
      const neediest = pools
        .filter((pool) => this.#dueMs(pool) <= nowMs)
        .reduce<ToolPool | undefined>(
          (a, b) => (a === undefined || b.fill < a.fill ? b : a),
          undefined,
        );
      if (neediest === undefined) break;
      this.#make(neediest);
    }
    // What is due already waits for one that is being made, whose end is told.
    const later = pools.map((pool) => this.#dueMs(pool)).filter((dueMs) => dueMs > nowMs);
    const isTended = pools.some((pool) => !pool.isEmpty);
    this.#lookAt(Math.min(...later, isTended ? nowMs + tendEveryMs : Infinity));
  }

  #dueMs(pool: ToolPool): number {
    const { cpus } = this.#options;
    return pool.dueMs(this.#running === 0 ? "none" : this.#running < cpus ? "some" : "full");
  }

  #make(pool: ToolPool): void {
    const making = pool.refill();
    this.#making.add(making);
    void making.then(() => {
      this.#making.delete(making);
      this.stir();
    });
  }

  /** One alarm at a time, and the earliest: looking too early does no harm. */
  #lookAt(atMs: number): void {
    if (atMs >= this.#alarm.atMs) return;
    this.#alarm.off.abort(calledOff);
    const alarm = { atMs, off: new AbortController() };
    this.#alarm = alarm;
    const { clock } = this.#options;
    void clock.sleep(Math.max(0, atMs - clock.monotonicMs()), alarm.off.signal).then(
      () => {
        alarm.atMs = Infinity;
        this.stir();
      },
      () => undefined,
    );
  }
}
