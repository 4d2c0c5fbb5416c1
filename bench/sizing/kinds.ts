/**
 * The kinds of tools that are sized: by what binds their calls, and by how these start.
 */
import type { BenchTool } from "../tools.ts";

/** A tool, and what its calls ask of it. */
export interface Kind {
  readonly name: string;
  readonly tool: BenchTool;
  readonly args: Readonly<Record<string, number>>;
  /** Calls at once that keep two processors busy. */
  readonly busySlots: number;
}

/** Seconds that a call of the first kind waits. */
const waitSeconds = 0.1;
/** Of a hash of the second: some 50 ms of a processor. */
const rounds = 200_000;

/** Calls that do not wait. */
const busy = { busySlots: 2 } as const;

const working = { language: "Python", weight: "working" } as const;

/** A tool that does nothing. */
export const lightKind: Kind = {
  name: "Python template, light",
  tool: { ...working, start: "template" },
  args: {},
  ...busy,
};

export const kinds: readonly Kind[] = [
  {
    name: "Python template, waits 100 ms",
    tool: { ...working, start: "template" },
    args: { seconds: waitSeconds },
    busySlots: 6,
  },
  {
    name: "Python template, computes",
    tool: { ...working, start: "template" },
    args: { rounds },
    ...busy,
  },
  lightKind,
  { name: "Python cold, light", tool: { ...working, start: "cold" }, args: {}, ...busy },
  {
    name: "JavaScript template, light",
    tool: { language: "JavaScript", weight: "working", start: "template" },
    args: {},
    ...busy,
  },
  {
    name: "JavaScript pool, light",
    tool: { language: "JavaScript", weight: "working", start: "pool" },
    args: {},
    ...busy,
  },
];
