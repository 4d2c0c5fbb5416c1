/**
 * How fast the processors are: other machines on the same hardware slow them down from minute to
 * minute, and with them every call.
 */

/** Milliseconds between two units of work. */
const pauseMs = 40;
/** Steps of a unit: some half a millisecond of a processor. */
const steps = 200_000;
/** Numbers that a unit walks through: more than the nearest caches hold. */
const cells = 2 ** 20;
const microsecondsPerSecond = 1_000_000;

/** Does the same unit of work again and again beside a measurement. Its owner disposes it. */
export class SpeedGauge implements Disposable {
  readonly #memory = Int32Array.from({ length: cells }, (_, index) => index);
  readonly #timer: NodeJS.Timeout;
  #seconds = 0;
  #units = 0;
  #at = 1;

  constructor() {
    this.#timer = setInterval(() => this.#work(), pauseMs);
  }

  /** Processor seconds of all units so far, and their number. */
  get total(): { readonly seconds: number; readonly units: number } {
    return { seconds: this.#seconds, units: this.#units };
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }

  #work(): void {
    const before = process.threadCpuUsage();
    for (let step = 0; step < steps; step++) {
      const place = (Math.imul(this.#at, 1_103_515_245) + 12_345) >>> 12;
      this.#at = (this.#memory[place % cells] ?? 0) ^ (this.#at + place);
    }
    const { user, system } = process.threadCpuUsage(before);
    this.#seconds += (user + system) / microsecondsPerSecond;
    this.#units++;
  }
}
