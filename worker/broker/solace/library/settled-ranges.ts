/**
 * How much a consumer of the library has to remember of what was settled through it.
 *
 * The library numbers the messages of a consumer, and keeps settled neighbours of one outcome as a
 * range, from the first message on. It sends all ranges each time. An unsettled message, or another
 * outcome, splits a range. More than 64 ranges it cannot send: at worst that ends the process.
 */
import type { Settlement } from "../../broker.ts";

/** Ranges of a flow at most, with one for each unsettled message. The library's most is 64. */
export const mostRanges = 60;

/** Ranges after which a flow is replaced as soon as it has no unsettled messages. */
export const manyRanges = 20;

interface Range {
  first: number;
  last: number;
  readonly outcome: Settlement;
}

/** What was settled through one consumer, whose messages have the numbers from 1 on. */
export class SettledRanges {
  /** In order. The library begins with a range before the first message. */
  readonly #ranges: Range[] = [{ first: 0, last: 0, outcome: "accepted" }];

  /** As many ranges as the library has, or more. */
  get count(): number {
    return this.#ranges.length;
  }

  /** A message is settled, each once. The count grows by one at most. */
  add(number: number, outcome: Settlement): void {
    const next = this.#ranges.findIndex(({ first }) => first > number);
    const at = next === -1 ? this.#ranges.length : next;
    const [former, latter] = [this.#ranges[at - 1], this.#ranges[at]];
    const before = former?.outcome === outcome && former.last === number - 1 ? former : undefined;
    const after = latter?.outcome === outcome && latter.first === number + 1 ? latter : undefined;
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
}
