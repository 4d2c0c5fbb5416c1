/**
 * How many calls a second workers serve, by the costs of one call: docs/sizing.md explains it.
 */

/** What one call costs. Seconds of the clock, then of processors. */
export interface CallCosts {
  /** That a call has its slot, with no wait for a processor. */
  readonly slotSeconds: number;
  /** That a template makes its sandbox, and no other meanwhile; 0 without a template. */
  readonly templateSeconds: number;
  /** Of the worker's process; of its event loop alone, which is part of it. */
  readonly worker: number;
  readonly loop: number;
  /** Of its sandbox, and of its part of a template. */
  readonly sandbox: number;
  readonly broker: number;
  /** Of the caller's process; of its event loop alone. */
  readonly client: number;
  readonly clientLoop: number;
}

/** Bytes. */
export interface MemoryCosts {
  readonly worker: number;
  /** Of a tool that has one. */
  readonly template: number;
  /** Of one idle sandbox, and of one with a call. */
  readonly idle: number;
  readonly running: number;
}

/** What there is. */
export interface Plant {
  readonly workers: number;
  /** Of each worker. */
  readonly slots: number;
  /** Processors that the parts have together. */
  readonly cores: number;
  /** Processors that they use without calls. */
  readonly idleCores: number;
  /** Whether broker and caller use the same processors. */
  readonly isShared: boolean;
  /** Processes that make calls, if they are to be a bound. */
  readonly clients?: number;
  /** Processors of a broker on a machine of its own, if it is to be a bound. */
  readonly brokerCores?: number;
  /** Memory of the workers' machine, its costs, and the idle sandboxes that it has to hold. */
  readonly memory?: MemoryCosts & { readonly bytes: number; readonly idleSandboxes: number };
}

/** Calls a second, by each part alone. */
export interface Bounds {
  readonly slots: number;
  readonly cores: number;
  readonly template: number;
  readonly "event loop": number;
  readonly broker: number;
  readonly client: number;
  readonly memory: number;
}

/** Calls a second, and the part that is the least of the bounds. */
export interface Prediction {
  readonly callsPerSecond: number;
  readonly bound: keyof Bounds;
  readonly bounds: Bounds;
}

/** Of a call that waits for no processor, with broker and caller where they use the same ones. */
export function processorSeconds(
  costs: Pick<CallCosts, "worker" | "sandbox" | "broker" | "client">,
  isShared: boolean,
): number {
  return costs.worker + costs.sandbox + (isShared ? costs.broker + costs.client : 0);
}

/** What each part allows, whatever the others do. */
export function boundsOf(costs: CallCosts, plant: Plant): Bounds {
  const { workers, slots, cores, idleCores, isShared, clients, brokerCores } = plant;
  return {
    slots: (workers * slots) / costs.slotSeconds,
    cores: Math.max(0, cores - idleCores) / processorSeconds(costs, isShared),
    template: workers / costs.templateSeconds,
    "event loop": workers / costs.loop,
    broker: (brokerCores ?? Infinity) / costs.broker,
    client: (clients ?? Infinity) / costs.clientLoop,
    memory: fittingCalls(plant) / costs.slotSeconds,
  };
}

/**
 * The least of the bounds; where slots and processors both nearly bind, somewhat less: calls in
 * slots wait for a processor.
 */
export function predict(costs: CallCosts, plant: Plant): Prediction {
  const bounds = boundsOf(costs, plant);
  const names = Object.keys(bounds) as (keyof Bounds)[];
  const bound = names.reduce((least, name) => (bounds[name] < bounds[least] ? name : least));
  const calls = Math.min(plant.workers * plant.slots, fittingCalls(plant));
  const queued = queuedThroughput(calls, costs, plant);
  return { callsPerSecond: Math.min(queued, bounds[bound]), bound, bounds };
}

/**
 * Idle sandboxes by which `callsPerSecond` find one each: those that are taken while one is made,
 * and one more.
 */
export function idleSandboxes(callsPerSecond: number, makeSeconds: number): number {
  return Math.ceil(callsPerSecond * makeSeconds) + 1;
}

/** Slots by which a worker is bound by something else: a tenth more than are in use then. */
export function slotsFor(costs: CallCosts, plant: Omit<Plant, "slots">): number {
  const { slots: _slots, ...others } = boundsOf(costs, { ...plant, slots: Infinity });
  const rate = Math.min(...Object.values(others));
  return Math.ceil((1.1 * rate * costs.slotSeconds) / plant.workers);
}

/** Workers on one machine, and its processors. */
export interface Machine {
  readonly workers: number;
  readonly cores: number;
  /** Of each worker. */
  readonly slots: number;
}

/** Processors of the largest machine that is thought of. */
const maxCores = 256;

/**
 * The machine with the fewest processors that serves a rate, and of these with the fewest workers;
 * broker and caller are elsewhere. Undefined where none does.
 *
 * @param idleCores processors that one worker uses without calls
 */
export function machineFor(
  callsPerSecond: number,
  costs: CallCosts,
  idleCores: number,
): Machine | undefined {
  for (let cores = 1; cores <= maxCores; cores++) {
    for (let workers = 1; workers <= cores; workers++) {
      const plant = { workers, cores, idleCores: workers * idleCores, isShared: false };
      // Too few cores whatever the queues: the network need not be solved.
      const slots = slotsFor(costs, plant);
      const { cores: most } = boundsOf(costs, { ...plant, slots });
      if (most < callsPerSecond) break;
      if (predict(costs, { ...plant, slots }).callsPerSecond >= callsPerSecond)
        return { workers, cores, slots };
    }
  }
  return undefined;
}

/** Calls that run at once in the memory that workers and idle sandboxes leave. */
function fittingCalls({ memory, workers }: Plant): number {
  if (memory === undefined) return Infinity;
  const { bytes, worker, template, idle } = memory;
  const free = bytes - workers * (worker + template) - memory.idleSandboxes * idle;
  return Math.max(0, Math.floor(free / memory.running));
}

/**
 * Calls a second of a closed network of calls that use processors, and templates and event loops
 * of their workers, and wait besides: exact mean value analysis (Reiser and Lavenberg), several of
 * a kind as one that is as fast as all and a wait for the rest (Seidmann).
 */
function queuedThroughput(calls: number, costs: CallCosts, plant: Plant): number {
  const { workers, idleCores, isShared } = plant;
  const cores = plant.cores - idleCores;
  if (cores <= 0) return 0;
  const demand = processorSeconds(costs, isShared);
  const services = [demand / cores, costs.templateSeconds / workers, costs.loop / workers];
  const atProcessors = cores < 1 ? demand / cores : demand;
  const inSlot = Math.max(costs.slotSeconds, demand) - demand;
  // A call has its slot while the template makes its sandbox, and uses a processor in the loop.
  const waits = inSlot + atProcessors - services.reduce((sum, service) => sum + service, 0);
  let queues = services.map(() => 0);
  let throughput = 0;
  for (let n = 1; n <= Math.min(calls, maxQueued); n++) {
    const seconds = services.map((service, station) => service * (1 + (queues[station] ?? 0)));
    throughput = n / seconds.reduce((sum, each) => sum + each, Math.max(0, waits));
    queues = seconds.map((each) => throughput * each);
  }
  return throughput;
}

/** Calls at once beyond which nothing changes. */
const maxQueued = 10_000;
