/**
 * Pairs of rows: the same with a list of hosts and without.
 */
import type { StartKind } from "../../worker/protocol/execution.ts";
import type { Caller } from "../caller.ts";
import type { Measurement, Row } from "../measure.ts";
import { hitsOf } from "../stock.ts";
import { type BenchTool, nameOf } from "../tools.ts";
import type { Clients, Order } from "./clients.ts";

const bytesPerMebibyte = 1024 * 1024;

/** What is compared, and how. */
export interface Comparison {
  readonly what: string;
  /**
   * The times of the other's median that the one with a list may take; undefined: its median is
   * within the noise of the other, up to that one's p90.
   */
  readonly maxRatio?: number;
}

/** Two rows; rounds run one after the other. */
export interface Pair extends Comparison {
  readonly listed: Row;
  readonly other: Row;
}

/** A pair after its rounds. */
export interface MeasuredPair extends Comparison {
  readonly listed: Measurement;
  readonly other: Measurement;
}

/** Those of the tool that hide least of what a sandbox takes. */
const startPairs: readonly (Omit<Comparison, "what"> & { readonly start: StartKind })[] = [
  { start: "cold", maxRatio: 1.7 },
  { start: "pool" },
  { start: "template" },
];

/** Bulk has 0.3 of the rate. */
const transferPairs: readonly (Comparison & Order)[] = [
  { what: "a byte and back", work: "trips", amount: 20, maxRatio: 2.5 },
  ...(["download", "upload"] as const).map((work) => ({
    ...{ what: `${work} of 32 MiB`, work, amount: 32 * bytesPerMebibyte, maxRatio: 1 / 0.3 },
  })),
];

function toolOf(start: StartKind, network: "list" | "none"): BenchTool {
  return { language: "Python", weight: "light", start, network };
}

/** Every tool that the pairs call. */
export const networkTools: readonly BenchTool[] = startPairs.flatMap(({ start }) => [
  toolOf(start, "list"),
  toolOf(start, "none"),
]);

/** Whole calls in each start mode; the other has no network. */
export function pairsOfStarts(caller: Caller): readonly Pair[] {
  const row = (tool: BenchTool): Row => ({
    ...{ name: nameOf(tool), kind: tool.start, isAlone: true, run: () => caller.invoke(tool) },
    ...(tool.start === "template" && { hits: () => hitsOf(caller.stock, nameOf(tool)) }),
  });
  return startPairs.map(({ start, ...comparison }) => ({
    ...{ what: `${start} start, Python light`, ...comparison },
    listed: row(toolOf(start, "list")),
    other: row(toolOf(start, "none")),
  }));
}

/** Bytes on open connections; the other has the host's network. */
export function pairsOfTransfers({ through, direct }: Clients): readonly Pair[] {
  return transferPairs.map(({ work, amount, ...comparison }) => {
    const row = (name: string, client: typeof through): Row => ({
      ...{ name: `${comparison.what}, ${name}`, kind: "floor", isAlone: true },
      run: async () => {
        const elapsedMs = await client.run({ work, amount });
        return { elapsedMs: work === "trips" ? elapsedMs / amount : elapsedMs };
      },
    });
    return { ...comparison, listed: row("through", through), other: row("direct", direct) };
  });
}
