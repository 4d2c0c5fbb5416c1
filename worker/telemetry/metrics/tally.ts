/**
 * Counts by labels.
 */
import type { Sample } from "./catalog.ts";
import type { MetricLabel } from "./catalog/labels.ts";

/** A count for each combination of values that was added. */
export class Tally<Label extends MetricLabel> {
  readonly #counts = new Map<string, { labels: Readonly<Record<Label, string>>; value: number }>();

  /** Adds to the count of these labels, always given in the same order. */
  add(labels: Readonly<Record<Label, string>>, more = 1): void {
    const key = Object.values(labels).join("\n");
    const known = this.#counts.get(key);
    if (known === undefined) this.#counts.set(key, { labels, value: more });
    else known.value += more;
  }

  samples(): readonly Sample[] {
    return [...this.#counts.values()];
  }
}
