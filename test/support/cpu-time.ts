/**
 * Measures of work in CPU time of this thread, in which waiting for a core on a busy machine does
 * not show.
 */

/** Milliseconds of CPU time that this thread has used so far. */
function threadCpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

/** CPU milliseconds that a smaller piece of work is repeated for, so that it can be measured. */
const measurableMs = 2;
const rounds = 3;

/**
 * How many times as much CPU time `large` takes as `small`: the least of a few rounds. Each runs as
 * often as `small` needs to be measurable, so of the two only `large` may take long.
 */
export function timesTheWork(small: () => void, large: () => void): number {
  const cpuMsOf = (work: () => void, times: number): number => {
    const beganMs = threadCpuMs();
    for (let time = 0; time < times; time++) work();
    return threadCpuMs() - beganMs;
  };
  const ratios: number[] = [];
  for (let times = 1; ratios.length < rounds;) {
    const smallMs = cpuMsOf(small, times);
    // Asked in each round: what is compiled or collected makes a first one dear.
    if (smallMs < measurableMs) times *= 2;
    else ratios.push(cpuMsOf(large, times) / smallMs);
  }
  return Math.min(...ratios);
}

/** Milliseconds between two looks of a {@link LoopWatch}. */
const lookMs = 5;

/**
 * Watches whether something holds up the event loop of this thread by working on. Disposing it ends
 * that.
 */
export class LoopWatch implements Disposable {
  readonly #timer: NodeJS.Timeout;
  #lastMs = threadCpuMs();
  #longestMs = 0;

  constructor() {
    this.#timer = setInterval(() => this.#look(), lookMs);
  }

  /**
   * The most CPU milliseconds so far from one look to the next, which comes as soon as the loop
   * turns again.
   */
  get longestMs(): number {
    this.#look();
    return this.#longestMs;
  }

  #look(): void {
    const nowMs = threadCpuMs();
    this.#longestMs = Math.max(this.#longestMs, nowMs - this.#lastMs);
    this.#lastMs = nowMs;
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }
}
