/**
 * Calls of this checkout's worker and of another's, in turns: what a change has brought.
 */
import { resolve, sep } from "node:path";
import { pathToFileURL } from "node:url";
import type { Agent } from "../../harness/agent.ts";
import { startBroker } from "../brokers.ts";
import { connectAgent } from "../end-to-end.ts";
import {
  type BenchDirectory,
  callTimeoutSeconds,
  environmentOf,
  makeBase,
  startTimeoutMs,
} from "../environment.ts";
import { inFlight } from "../measure.ts";
import { lightTool, pandasTool } from "./names.ts";
import { installPandas } from "./pandas.ts";
import { ProcessorGroup } from "../sizing/group.ts";
import { WorkerProcess } from "../worker-process.ts";

/** Rounds that are not counted. */
const warmUpRounds = 5;
/** Milliseconds between two calls that are made alone: a sandbox is ready again. */
const pauseMs = 60;
/** Windows of each worker at full rate, and the milliseconds of one. */
const windows = { count: 6, ms: 3_000 };

/** Tools that do nothing and leave it to the worker how their calls start. */
const tools: Readonly<Record<string, object>> = {
  [lightTool]: entryOf("python", "bench_light"),
  "Python typical": entryOf("python", "bench_typical"),
  "JavaScript typical": entryOf("node", "typical.js"),
};

function entryOf(runtime: string, module: string) {
  return { runtime, module, function: "nothing", warm: { min: 1, max: 16 } };
}

/** Calls of one tool by one worker; times in milliseconds. */
export interface Side {
  readonly p10Ms: number;
  readonly p50Ms: number;
  readonly p90Ms: number;
  /** At full rate. */
  readonly callsPerSecond: number;
  /** Processor time of worker and sandboxes at full rate; undefined where nobody counts it. */
  readonly cpuMsPerCall: number | undefined;
}

/** Calls of one tool. */
export interface BesideRow {
  readonly tool: string;
  readonly before: Side;
  readonly after: Side;
}

/** Results of such a run. */
export interface MeasuredBeside {
  /** Of the other checkout. */
  readonly before: string;
  readonly rows: readonly BesideRow[];
}

interface RunningWorker extends AsyncDisposable {
  readonly agent: Agent;
  readonly group: ProcessorGroup | undefined;
}

/** Measures the worker of this checkout beside that of another, which has a benchmark like it. */
export async function measureBeside(
  otherRoot: string,
  rounds: number,
): Promise<Omit<MeasuredBeside, "before">> {
  await using base = await makeBase();
  const pandas = await installPandas(base.path);
  const served: Served = {
    ...pandas,
    tools: { ...tools, ...(pandas && { [pandasTool]: entryOf("python", pandas.module) }) },
  };
  await using before = await startWorker(base, "before", otherRoot, served);
  await using after = await startWorker(
    base,
    "after",
    resolve(import.meta.dirname, "../.."),
    served,
  );
  const rows: BesideRow[] = [];
  for (const tool of Object.keys(served.tools))
    rows.push(await measureTool(tool, [before, after], rounds));
  return { rows };
}

interface Served {
  readonly tools: Readonly<Record<string, object>>;
  /** In place of the benchmark's own. */
  readonly pythonDir?: string;
}

async function startWorker(
  base: BenchDirectory,
  name: string,
  root: string,
  served: Served,
): Promise<RunningWorker> {
  await using owned = new AsyncDisposableStack();
  const signal = AbortSignal.timeout(startTimeoutMs);
  const broker = owned.use(await startBroker("dev"));
  const entries = Object.fromEntries(
    Object.entries(served.tools).map(([tool, entry]) => [nameOf(tool), entry]),
  );
  const ofTools = await environmentOf(base.path, name, [], broker.variables, entries);
  const { pythonDir } = served;
  const environment = pythonDir ? { ...ofTools, TOOLS_PYTHON_DIR: pythonDir } : ofTools;
  const group = owned.use(makeGroup(name));
  const program = new URL("bench/worker.ts", pathToFileURL(resolve(root) + sep));
  const start = () => WorkerProcess.start(environment, signal, program);
  owned.use(await (group === undefined ? start() : group.around(start)));
  const agent = owned.use(await connectAgent(broker, signal));
  const all = owned.move();
  return { agent, group, [Symbol.asyncDispose]: () => all.disposeAsync() };
}

/** Undefined where this process may not make one. */
function makeGroup(name: string): ProcessorGroup | undefined {
  try {
    return new ProcessorGroup(name);
  } catch {
    return undefined;
  }
}

async function measureTool(
  tool: string,
  workers: readonly [RunningWorker, RunningWorker],
  rounds: number,
): Promise<BesideRow> {
  const sides = workers.map((worker) => ({ worker, times: [] as number[] }));
  for (let round = -warmUpRounds; round < rounds; round++) {
    // Neither is always the first.
    for (const { worker, times } of round % 2 === 0 ? sides : sides.toReversed()) {
      await new Promise((done) => setTimeout(done, pauseMs));
      const startMs = performance.now();
      await call(worker, tool);
      if (round >= 0) times.push(performance.now() - startMs);
    }
  }
  const loads = sides.map(({ worker }) => new Load(worker, tool));
  for (let window = 0; window < windows.count; window++)
    for (const load of window % 2 === 0 ? loads : loads.toReversed()) await load.run();
  const [before, after] = sides.map(({ times }, index) => sideOf(times, loads[index]));
  if (before === undefined || after === undefined) throw new Error("there are two sides");
  return { tool, before, after };
}

function sideOf(times: readonly number[], load: Load | undefined): Side {
  const sorted = times.toSorted((one, other) => one - other);
  const at = (part: number): number => sorted[Math.floor(sorted.length * part)] ?? Number.NaN;
  const { callsPerSecond = Number.NaN, cpuMsPerCall } = load ?? {};
  return { p10Ms: at(0.1), p50Ms: at(0.5), p90Ms: at(0.9), callsPerSecond, cpuMsPerCall };
}

/** Calls at full rate, window by window. */
class Load {
  readonly #worker: RunningWorker;
  readonly #tool: string;
  #calls = 0;
  #elapsedMs = 0;
  #cpuSeconds = 0;

  constructor(worker: RunningWorker, tool: string) {
    this.#worker = worker;
    this.#tool = tool;
  }

  get callsPerSecond(): number {
    return (this.#calls * 1000) / this.#elapsedMs;
  }

  get cpuMsPerCall(): number | undefined {
    if (this.#worker.group === undefined) return undefined;
    return (this.#cpuSeconds * 1000) / this.#calls;
  }

  async run(): Promise<void> {
    const { group } = this.#worker;
    const [startMs, startSeconds] = [performance.now(), group?.seconds ?? 0];
    const isOver = (): boolean => performance.now() - startMs > windows.ms;
    const lanes = Array.from({ length: inFlight }, async () => {
      for (; !isOver(); this.#calls++) await call(this.#worker, this.#tool);
    });
    await Promise.all(lanes);
    this.#elapsedMs += performance.now() - startMs;
    this.#cpuSeconds += (group?.seconds ?? 0) - startSeconds;
  }
}

async function call({ agent }: RunningWorker, tool: string): Promise<void> {
  const answer = await agent.call({ tool: nameOf(tool), timeoutSeconds: callTimeoutSeconds });
  if (answer.kind !== "success") throw new Error(JSON.stringify(answer));
}

function nameOf(tool: string): string {
  return tool.replaceAll(" ", "_").toLowerCase();
}
