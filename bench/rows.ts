/**
 * What is measured: from the floor over bare sandboxes to whole calls and the event loop of who answers them.
 */
import { openBareRows } from "./bare.ts";
import { Caller } from "./caller.ts";
import { openDevBrokerRows, openMemoryRows } from "./end-to-end.ts";
import { environmentOf, makeBase, nobody, startTimeoutMs } from "./environment.ts";
import { measureLoop } from "./event-loop.ts";
import { insideRows } from "./inside.ts";
import { type Measurement, measure } from "./measure.ts";
import { quiet } from "./stock.ts";
import { scarceTool, tools, typicalCold } from "./tools.ts";

/** What came of a run. */
export interface Measured {
  readonly rows: readonly Measurement[];
  /** What the hardened sandboxes have of control groups, and how long they take to join one. */
  readonly controlGroups: string;
  /** What the work directories lie on. */
  readonly workDirs: string;
}

/** Starts brokers, workers and agents, and measures everything over `rounds` rounds. */
export async function measureAll(rounds: number): Promise<Measured> {
  const signal = AbortSignal.timeout(startTimeoutMs);
  await using base = await makeBase();
  const environment = await environmentOf(base.path, "inside", [...tools, scarceTool], nobody);
  await using caller = await Caller.open(environment, signal);
  await using python = await caller.interpreterOf(typicalCold("Python"));
  await using node = await caller.interpreterOf(typicalCold("JavaScript"));
  await using bare = await openBareRows(base.path, { python, node });
  await using memory = await openMemoryRows(base.path, signal);
  await using dev = await openDevBrokerRows(base.path, signal);

  const rows = [...bare.rows, ...insideRows(caller), ...memory.rows, ...dev.rows];
  const views = [caller.stock, memory.stock, dev.stock];
  const measured = await measure(rows, rounds, () => quiet(views));
  const loop = await measureLoop(dev, rounds);
  return { rows: [...measured, ...loop], controlGroups: bare.controlGroups, workDirs: base.kind };
}
