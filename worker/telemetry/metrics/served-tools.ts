/**
 * Counts by tool, of the tools alone that a worker serves: no caller can add series without end.
 */
import type { Sample } from "./catalog.ts";

/** The counts of each served tool; a tool that is no longer served loses them. */
export class ServedTools<Counts> {
  readonly #create: () => Counts;
  readonly #tools = new Map<string, Counts>();
  #served: ReadonlySet<string> = new Set();

  constructor(create: () => Counts) {
    this.#create = create;
  }

  /** Those that have counts from now on. */
  serve(tools: Iterable<string>): void {
    this.#served = new Set(tools);
    for (const tool of this.#tools.keys()) if (!this.#served.has(tool)) this.#tools.delete(tool);
  }

  /** The counts of a tool for one call; those of a tool that is not served are not shown. */
  of(tool: string): Counts {
    const counts = this.#tools.get(tool) ?? this.#create();
    if (this.#served.has(tool)) this.#tools.set(tool, counts);
    return counts;
  }

  /** What is read of the counts of each tool, with its name. */
  samples<Value>(read: (counts: Counts) => readonly Sample<Value>[]): readonly Sample<Value>[] {
    return [...this.#tools].flatMap(([tool, counts]) =>
      read(counts).map(({ labels, value }) => ({ labels: { tool, ...labels }, value })),
    );
  }
}
