/**
 * Rows of calls inside a worker's own code, with no broker.
 */
import type { Caller } from "./caller.ts";
import type { Row } from "./measure.ts";
import { insideRow, missRow, resultRow, startRow } from "./names.ts";
import { hitsOf } from "./stock.ts";
import { type BenchTool, nameOf, scarceTool, tools, warmTools } from "./tools.ts";

/** Whole calls of every tool, what is inside those of some, and calls that find nothing waiting. */
export function insideRows(caller: Caller): readonly Row[] {
  return [
    ...tools.map((tool): Row => ({
      name: startRow(tool),
      kind: tool.start,
      run: () => caller.invoke(tool),
      ...(tool.start !== "cold" && { parkedBytes: () => parkedBytes(caller, tool) }),
      ...hitsOfTemplate(caller, tool),
    })),
    ...warmTools.flatMap((tool): readonly Row[] => {
      const facts = { kind: tool.start, isAlone: true, ...hitsOfTemplate(caller, tool) };
      return [
        { ...facts, name: resultRow(tool), run: () => caller.invokeInside(tool, "result") },
        { ...facts, name: insideRow(tool), run: () => caller.invokeInside(tool, "exit") },
      ];
    }),
    rowOfMisses(caller),
  ];
}

/**
 * Calls of a pool found a sandbox waiting, or started cold; those of a template may have had one
 * made.
 */
function hitsOfTemplate(caller: Caller, tool: BenchTool): Pick<Row, "hits"> {
  return tool.start === "template" ? { hits: () => hitsOf(caller.stock, nameOf(tool)) } : {};
}

/** Calls whose one waiting sandbox was just taken by another. */
function rowOfMisses(caller: Caller): Row {
  const hitsNow = (): Promise<number> => hitsOf(caller.stock, nameOf(scarceTool));
  let hits = 0;
  return {
    name: missRow,
    kind: scarceTool.start,
    isAlone: true,
    async run() {
      await using _other = await caller.acquire(scarceTool);
      const before = await hitsNow();
      const timing = await caller.invoke(scarceTool);
      hits += (await hitsNow()) - before;
      return timing;
    },
    hits: () => Promise.resolve(hits),
  };
}

/** What the next sandbox that a call gets took while it waited; undefined when none waited. */
async function parkedBytes(caller: Caller, tool: BenchTool): Promise<number | undefined> {
  await using acquired = await caller.acquire(tool);
  const { sandbox } = acquired;
  return "privateBytes" in sandbox ? Number(sandbox.privateBytes) : undefined;
}
