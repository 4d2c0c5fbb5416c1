/**
 * What programs take of a worker that send requests without end and read no answer: its event loop
 * and its memory.
 */
import { readFile } from "node:fs/promises";
import type { Agent } from "../../harness/agent.ts";
import { startBroker } from "../brokers.ts";
import { connectAgent } from "../end-to-end.ts";
import { callTimeoutSeconds, environmentOf, startTimeoutMs } from "../environment.ts";
import type { Delays } from "../loop-delays.ts";
import { inFlight } from "../measure.ts";
import { WorkerProcess } from "../worker-process.ts";
import { callers, describedTool, floodsTool, gatewayEntries } from "./tools.ts";

/** Milliseconds between two samples of the memory. */
const sampleMs = 20;
/** Calls that a worker has answered before, so that its code is compiled. */
const warmUpCalls = 40;

/** The requests of a flood; `%d` stands for the id. */
const requests = {
  "lookups with large answers": {
    type: "describe_tool",
    payload: { id: describedTool, level: "full" },
  },
  "lookups with small answers": { type: "list_namespaces", payload: {} },
} as const;
type FloodKind = keyof typeof requests;

/** How long, and how much. */
export interface FloodOptions {
  /** Requests of each program. */
  readonly requests: number;
  readonly seconds: number;
  /** Programs at once. */
  readonly programs: number;
}

export const wholeFlood: FloodOptions = { requests: 300_000, seconds: 5, programs: inFlight };

/** One kind of flood. */
export interface Flood {
  readonly kind: FloodKind;
  readonly requests: number;
  readonly programs: number;
  /** That left all programs: with what the sockets hold, at least what the worker read. */
  readonly takenBytes: number;
  readonly loop: Delays;
  /** Of the worker's resident memory at its peak. */
  readonly growthBytes: number;
}

/** Takes each of a worker in which nothing has grown before. */
export async function measureFloods(
  base: string,
  options: FloodOptions = wholeFlood,
): Promise<readonly Flood[]> {
  const floods: Flood[] = [];
  for (const kind of Object.keys(requests) as FloodKind[])
    floods.push(await measureFlood(base, kind, options));
  return floods;
}

async function measureFlood(base: string, kind: FloodKind, options: FloodOptions): Promise<Flood> {
  const signal = AbortSignal.timeout(startTimeoutMs);
  await using stack = new AsyncDisposableStack();
  const broker = stack.use(await startBroker("dev"));
  const name = `flood of ${kind}`;
  const environment = await environmentOf(base, name, [], broker.variables, gatewayEntries);
  const worker = stack.use(await WorkerProcess.start(environment, signal));
  const agent = stack.use(await connectAgent(broker, signal));
  for (let n = 0; n < warmUpCalls; n++)
    await agent.call({ tool: callers.Python.lists, args: { count: 1 } });
  await worker.liveBytes();
  await worker.takeDelays();
  using memory = await sampleMemory(worker.pid);
  const { requests: count, seconds, programs } = options;
  const flood = Array.from({ length: programs }, () => sendFlood(agent, kind, count, seconds));
  const taken = await Promise.all(flood);
  return {
    ...{ kind, requests: count, programs },
    takenBytes: taken.reduce((sum, bytes) => sum + bytes, 0),
    loop: await worker.takeDelays(),
    growthBytes: memory.growthBytes(),
  };
}

/** The bytes that left the program. Throws when the worker ends it. */
async function sendFlood(
  agent: Agent,
  kind: FloodKind,
  count: number,
  seconds: number,
): Promise<number> {
  const { type, payload } = requests[kind];
  const request = `${JSON.stringify({ type, id: "%d", payload })}\n`;
  const args = { request, count, seconds };
  const answer = await agent.call({ tool: floodsTool, args, timeoutSeconds: callTimeoutSeconds });
  if (answer.kind !== "success") throw new Error(JSON.stringify(answer));
  return Number(answer.toolResult["sent"]);
}

/** Samples of the resident memory of a process. */
interface MemorySamples extends Disposable {
  /** Of the peak over the first. */
  growthBytes(): number;
}

async function sampleMemory(pid: number): Promise<MemorySamples> {
  const sample = async (): Promise<number> => {
    const status = await readFile(`/proc/${pid}/status`, "utf8");
    return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024;
  };
  const before = await sample();
  let peak = before;
  const sampling = setInterval(() => {
    void sample().then((bytes) => (peak = Math.max(peak, bytes)));
  }, sampleMs);
  return {
    growthBytes: () => peak - before,
    [Symbol.dispose]: () => clearInterval(sampling),
  };
}
