/**
 * How much a consumer of the library has to remember of what was settled through it.
 *
 * The library numbers the messages of a consumer, and keeps what was settled as ranges of
 * neighbours that ended alike, from the first message on. It tells the broker of all of them each
 * time. A message that is not settled yet parts two ranges, as one does that ended otherwise. More
 * than 64 ranges it cannot tell: what happens then depends on where the next one lies, and at worst
 * it ends the process.
 */
import type { Settlement } from "../broker.ts";

/**
 * Ranges that a flow may come to, one for each unsettled message included. The library's most is
 * 64.
 */
export const mostRanges = 60;

/** Ranges after which a flow is replaced as soon as it has no unsettled messages. */
export const manyRanges = 20;

/** Neighbouring messages that ended alike, by the first and the last of their numbers. */
interface Range {
  first: number;
  last: number;
  readonly outcome: Settlement;
}

/** What was settled through one consumer, whose messages have the numbers from 1 on. */
export class SettledRanges {
  /**
   * In order. The library begins with a range of its own, of what came before the first message.
   */
  readonly #ranges: Range[] = [{ first: 0, last: 0, outcome: "accepted" }];

  /** How many ranges there are: as many as the library has, or more. */
  get count(): number {
    return this.#ranges.length;
  }

  /** A message ended; each does so once. The count grows by one at most. */
  add(number: number, outcome: Settlement): void {
    const next = this.#ranges.findIndex(({ first }) => first > number);
    const at = next === -1 ? this.#ranges.length : next;
    const before = this.#neighbour(at - 1, outcome, ({ last }) => last === number - 1);
    const after = this.#neighbour(at, outcome, ({ first }) => first === number + 1);
    if (before && after) {
      before.last = after.last;
      this.#ranges.splice(at, 1);
    } else if (before) {
      before.last = number;
    } else if (after) {
      after.first = number;
    } else {
      this.#ranges.splice(at, 0, { first: number, last: number, outcome });
    }
  }

  #neighbour(
    at: number,
    outcome: Settlement,
    touches: (range: Range) => boolean,
  ): Range | undefined {
    const range = this.#ranges[at];
    return range?.outcome === outcome && touches(range) ? range : undefined;
  }
}
