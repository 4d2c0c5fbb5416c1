/**
 * What calls by tools cost, and what programs can take of a worker by them.
 */
import { startBroker } from "../brokers.ts";
import { Caller } from "../caller.ts";
import { connectAgent } from "../end-to-end.ts";
import { environmentOf, makeBase, noBroker, startTimeoutMs } from "../environment.ts";
import { openFloor } from "../floor.ts";
import { type Measurement, measure } from "../measure.ts";
import { quiet } from "../stock.ts";
import { WorkerProcess } from "../worker-process.ts";
import { measureFloods } from "./floods.ts";
import { measurePrograms } from "./programs.ts";
import { gatewayRows } from "./rows.ts";
import type { MeasuredGateway } from "./table.ts";
import { gatewayEntries } from "./tools.ts";

/** Starts workers, and measures everything. */
export async function measureGateway(rounds: number): Promise<MeasuredGateway> {
  await using base = await makeBase();
  const rows = await measureRows(base.path, rounds);
  const floods = await measureFloods(base.path);
  return { rows, floods, programs: await measurePrograms(base.path) };
}

async function measureRows(base: string, rounds: number): Promise<readonly Measurement[]> {
  const signal = AbortSignal.timeout(startTimeoutMs);
  await using stack = new AsyncDisposableStack();
  const floor = stack.use(await openFloor(1));
  const inside = await environmentOf(base, "gateway", [], noBroker, gatewayEntries);
  const caller = stack.use(await Caller.open(inside, signal));
  const broker = stack.use(await startBroker("dev"));
  const beside = await environmentOf(base, "gateway-dev", [], broker.variables, gatewayEntries);
  const worker = stack.use(await WorkerProcess.start(beside, signal));
  const agent = stack.use(await connectAgent(broker, signal));
  const views = [caller.stock, () => worker.stats()];
  return await measure(gatewayRows({ floor, caller, agent }), rounds, () => quiet(views));
}
