/**
 * Programs that call tools, many more than there are slots: whether all end, and how many run at
 * once.
 */
import { startBroker } from "../brokers.ts";
import { connectAgent } from "../end-to-end.ts";
import { environmentOf, startTimeoutMs } from "../environment.ts";
import { inFlight } from "../measure.ts";
import { WorkerProcess } from "../worker-process.ts";
import { type Span, mostAtOnce } from "./overlap.ts";
import { gatewayEntries, programTool, workTool } from "./tools.ts";

/** Seconds that the last program may wait for its turn. */
const timeoutSeconds = 300;
/** Seconds of work before, between, after and in the calls of a program. */
const workSeconds = 0.02;

/** Python: what the spans of the work are. */
const code = "import bench_gateway\n__out = bench_gateway.work_by_calls(tools, **inputs)";

/** So many programs, and calls of each. */
export interface ProgramOptions {
  readonly programs: number;
  readonly calls: number;
}

export const allPrograms: ProgramOptions = { programs: 100, calls: 10 };

/** What came of the programs. */
export interface Programs extends ProgramOptions {
  readonly slots: number;
  /** Those that returned the results of all their calls. */
  readonly ended: number;
  /** Programs and called tools that worked at one moment, by the clock inside. */
  readonly mostAtOnce: number;
  readonly seconds: number;
}

/** Starts all at once. */
export async function measurePrograms(
  base: string,
  options: ProgramOptions = allPrograms,
): Promise<Programs> {
  const signal = AbortSignal.timeout(startTimeoutMs);
  await using stack = new AsyncDisposableStack();
  const broker = stack.use(await startBroker("dev"));
  const environment = {
    ...(await environmentOf(base, "programs", [], broker.variables, gatewayEntries)),
    SANDBOX_MAX_QUEUED: String(options.programs),
  };
  stack.use(await WorkerProcess.start(environment, signal));
  const agent = stack.use(await connectAgent(broker, signal));
  const inputs = { tool: workTool, count: options.calls, seconds: workSeconds };
  const startMs = performance.now();
  const answers = await Promise.all(
    Array.from({ length: options.programs }, () =>
      agent.call({ tool: programTool, args: { code, inputs }, timeoutSeconds }),
    ),
  );
  const seconds = (performance.now() - startMs) / 1000;
  const ended = answers.filter((answer) => answer.kind === "success");
  const spans = ended.flatMap(({ toolResult }) => toolResult["value"] as readonly Span[]);
  return {
    ...options,
    slots: inFlight,
    ended: ended.length,
    mostAtOnce: mostAtOnce(spans),
    seconds,
  };
}
