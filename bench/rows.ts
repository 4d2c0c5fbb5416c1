/**
 * What is measured: from the floor over bare sandboxes to whole calls and the event loop of who
 * answers them.
 */
import { openBareRows } from "./bare.ts";
import { Caller } from "./caller.ts";
import { measureBatches } from "./batches.ts";
import { sharingBrokers } from "./brokers.ts";
import { type BrokerRows, openBrokerRows, openMemoryRows } from "./end-to-end.ts";
import { environmentOf, makeBase, noBroker, startTimeoutMs } from "./environment.ts";
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
  await using base = await makeBase();
  const calls = await measureCalls(base.path, rounds);
  return {
    rows: [...calls.rows, ...(await measureBatches(base.path))],
    controlGroups: calls.controlGroups,
    workDirs: base.kind,
  };
}

/** All but the batches, next to which nothing else is to run. */
async function measureCalls(
  base: string,
  rounds: number,
): Promise<Pick<Measured, "rows" | "controlGroups">> {
  const signal = AbortSignal.timeout(startTimeoutMs);
  await using stack = new AsyncDisposableStack();
  const environment = await environmentOf(base, "inside", [...tools, scarceTool], noBroker);
  const caller = stack.use(await Caller.open(environment, signal));
  const python = stack.use(await caller.interpreterOf(typicalCold("Python")));
  const node = stack.use(await caller.interpreterOf(typicalCold("JavaScript")));
  const bare = stack.use(await openBareRows(base, { python, node }));
  const memory = stack.use(await openMemoryRows(base, signal));
  const dev = stack.use(await openBrokerRows("dev", base, signal));
  const brokers: BrokerRows[] = [memory, dev];
  for (const kind of sharingBrokers) {
    brokers.push(stack.use(await openBrokerRows(kind, base, signal)));
  }
  const rows = [bare, { rows: insideRows(caller) }, ...brokers].flatMap((part) => part.rows);
  const views = [caller, ...brokers].map(({ stock }) => stock);
  const measured = await measure(rows, rounds, () => quiet(views));
  const loop = await measureLoop(dev, rounds);
  return { rows: [...measured, ...loop], controlGroups: bare.controlGroups };
}
