/**
 * Rows of a worker's event loop, while the worker has as much to do as it takes.
 */
import type { Agent } from "../harness/agent.ts";
import { callTimeoutSeconds } from "./environment.ts";
import { type Measurement, inFlight } from "./measure.ts";
import { loopRows } from "./names.ts";
import { floodTool, nameOf, typicalPython } from "./tools.ts";
import type { WorkerProcess } from "./worker-process.ts";

/** Milliseconds of load, and of flood, for each round of the other rows. */
const msPerRound = 30;

/** What is put to work. */
export interface LoopParts {
  readonly agent: Agent;
  readonly worker: WorkerProcess;
}

/**
 * The delays of the worker's event loop under calls, and under tools that tell statuses as fast as
 * they can.
 */
export async function measureLoop(
  parts: LoopParts,
  rounds: number,
): Promise<readonly Measurement[]> {
  const endsAtMs = (): number => performance.now() + msPerRound * rounds;
  const load = async (): Promise<void> => {
    for (const endMs = endsAtMs(); performance.now() < endMs;)
      await call(parts.agent, nameOf(typicalPython), {});
  };
  const flood = (): Promise<void> =>
    call(parts.agent, floodTool, { seconds: (msPerRound * rounds) / 1000 });
  return [
    await delaysDuring(parts.worker, loopRows.load, load),
    await delaysDuring(parts.worker, loopRows.flood, flood),
  ];
}

async function delaysDuring(
  worker: WorkerProcess,
  name: string,
  work: () => Promise<void>,
): Promise<Measurement> {
  await worker.takeDelays();
  await Promise.all(Array.from({ length: inFlight }, work));
  return { name, kind: "loop", ...(await worker.takeDelays()) };
}

async function call(agent: Agent, tool: string, args: { seconds?: number }): Promise<void> {
  const answer = await agent.call({ tool, args, timeoutSeconds: callTimeoutSeconds });
  if (answer.kind !== "success") throw new Error(JSON.stringify(answer));
}
