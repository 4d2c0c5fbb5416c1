/**
 * Calls of this checkout's worker and of another's, in turns: what a change has brought.
 */
import { join, resolve } from "node:path";
import { diskDirectory, makeBase, makeDirectory } from "../environment.ts";
import { inFlight } from "../measure.ts";
import { type ArtifactRow, artifactEntries, measureArtifactCalls } from "./artifacts.ts";
import { lightTool, pandasTool } from "./names.ts";
import { installPandas } from "./pandas.ts";
import { BesideWorker } from "./worker.ts";

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
  /** Missing in runs of old. */
  readonly artifacts?: readonly ArtifactRow[];
}

/** Measures the worker of this checkout beside that of another, which has a benchmark like it. */
export async function measureBeside(
  otherRoot: string,
  rounds: number,
): Promise<Omit<MeasuredBeside, "before">> {
  await using base = await makeBase();
  // Artifacts survive a crash of the machine, so they are not in memory.
  await using disk = await makeDirectory(diskDirectory);
  const storePath = join(disk.path, "artifacts");
  const pandas = await installPandas(base.path);
  const served = { ...tools, ...(pandas && { [pandasTool]: entryOf("python", pandas.module) }) };
  const named = Object.entries(served).map(([tool, entry]) => [nameOf(tool), entry] as const);
  const entries = { ...Object.fromEntries(named), ...artifactEntries };
  const variables = {
    ARTIFACT_BASE_PATH: storePath,
    ...(pandas && { TOOLS_PYTHON_DIR: pandas.pythonDir }),
  };
  const start = (name: string, root: string) =>
    BesideWorker.start({ base: base.path, name, root, entries, variables });
  await using before = await start("before", otherRoot);
  await using after = await start("after", resolve(import.meta.dirname, "../.."));
  const rows: BesideRow[] = [];
  for (const tool of Object.keys(served))
    rows.push(await measureTool(tool, [before, after], rounds));
  return { rows, artifacts: await measureArtifactCalls([before, after], storePath) };
}

async function measureTool(
  tool: string,
  workers: readonly [BesideWorker, BesideWorker],
  rounds: number,
): Promise<BesideRow> {
  const sides = workers.map((worker) => ({ worker, times: [] as number[] }));
  for (let round = -warmUpRounds; round < rounds; round++) {
    // Neither is always the first.
    for (const { worker, times } of round % 2 === 0 ? sides : sides.toReversed()) {
      await new Promise((done) => setTimeout(done, pauseMs));
      const startMs = performance.now();
      await worker.call({ tool: nameOf(tool) });
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
  readonly #worker: BesideWorker;
  readonly #tool: string;
  #calls = 0;
  #elapsedMs = 0;
  #cpuSeconds = 0;

  constructor(worker: BesideWorker, tool: string) {
    this.#worker = worker;
    this.#tool = tool;
  }

  get callsPerSecond(): number {
    return (this.#calls * 1000) / this.#elapsedMs;
  }

  get cpuMsPerCall(): number | undefined {
    if (this.#worker.cpuSeconds === undefined) return undefined;
    return (this.#cpuSeconds * 1000) / this.#calls;
  }

  async run(): Promise<void> {
    const [startMs, startSeconds] = [performance.now(), this.#worker.cpuSeconds ?? 0];
    const isOver = (): boolean => performance.now() - startMs > windows.ms;
    const lanes = Array.from({ length: inFlight }, async () => {
      for (; !isOver(); this.#calls++) await this.#worker.call({ tool: nameOf(this.#tool) });
    });
    await Promise.all(lanes);
    this.#elapsedMs += performance.now() - startMs;
    this.#cpuSeconds += (this.#worker.cpuSeconds ?? 0) - startSeconds;
  }
}

function nameOf(tool: string): string {
  return tool.replaceAll(" ", "_").toLowerCase();
}
