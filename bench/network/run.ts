/**
 * What a list of hosts costs: the starts of sandboxes, what passes through, and the worker that it
 * passes through.
 */
import { Caller } from "../caller.ts";
import { environmentOf, makeBase, noBroker, startTimeoutMs } from "../environment.ts";
import { measure } from "../measure.ts";
import { quiet } from "../stock.ts";
import { openClients } from "./clients.ts";
import { measureLoads } from "./load.ts";
import {
  type MeasuredPair,
  type Pair,
  networkTools,
  pairsOfStarts,
  pairsOfTransfers,
} from "./pairs.ts";
import type { MeasuredNetwork } from "./table.ts";

/** Starts sandboxes and a server, and measures everything. */
export async function measureNetwork(rounds: number): Promise<MeasuredNetwork> {
  await using base = await makeBase();
  const starts = await measureStarts(base.path, rounds);
  const transfers = await measureTransfers(base.path, rounds);
  return { starts, transfers, loads: await measureLoads(base.path) };
}

async function measureStarts(base: string, rounds: number): Promise<readonly MeasuredPair[]> {
  const environment = await environmentOf(base, "network", networkTools, noBroker);
  await using caller = await Caller.open(environment, AbortSignal.timeout(startTimeoutMs));
  return await measurePairs(pairsOfStarts(caller), rounds, () => quiet([caller.stock]));
}

async function measureTransfers(base: string, rounds: number): Promise<readonly MeasuredPair[]> {
  await using clients = await openClients(base);
  return await measurePairs(pairsOfTransfers(clients), rounds, () => Promise.resolve());
}

/** Every row once a round, those of a pair one after the other. */
async function measurePairs(
  pairs: readonly Pair[],
  rounds: number,
  whenQuiet: () => Promise<void>,
): Promise<readonly MeasuredPair[]> {
  const rows = pairs.flatMap(({ listed, other }) => [listed, other]);
  const measurements = await measure(rows, rounds, whenQuiet);
  return pairs.flatMap(({ what, maxRatio }, index) => {
    const [listed, other] = measurements.slice(2 * index, 2 * index + 2);
    if (listed === undefined || other === undefined) return [];
    return [{ what, ...(maxRatio !== undefined && { maxRatio }), listed, other }];
  });
}
