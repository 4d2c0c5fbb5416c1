/**
 * Chance that can be had again: whatever a chaos leaves to it follows from one number.
 */

/** What a chaos of this process begins with: `CHAOS_SEED`, or any number. */
export function chaosSeed(): number {
  const { CHAOS_SEED } = process.env;
  return CHAOS_SEED === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(CHAOS_SEED);
}

/** A sequence of numbers (mulberry32). */
export class ChaosRandom {
  #state: number;

  constructor(seed: number) {
    this.#state = seed;
  }

  /** At least 0 and less than 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** One of a list that is not empty. */
  pick<T>(list: readonly T[]): T {
    return list[Math.floor(this.next() * list.length)]!;
  }

  /** A number, give or take a half of it. */
  about(number: number): number {
    return (0.5 + this.next()) * number;
  }

  /** The list in another order. */
  shuffled<T>(list: readonly T[]): readonly T[] {
    const rest = [...list];
    return list.map(() => rest.splice(Math.floor(this.next() * rest.length), 1)[0]!);
  }

  /** A sequence of its own: who draws from it changes nothing for others, whenever that is. */
  fork(): ChaosRandom {
    return new ChaosRandom(Math.floor(this.next() * 2 ** 31));
  }
}
