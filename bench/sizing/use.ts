/**
 * What the parts of a benchmark take of the processors, from one look to the next.
 */
import type { ProcessorGroup } from "./group.ts";
import { machineSeconds, processSeconds } from "./processor.ts";

const microsecondsPerSecond = 1_000_000;

/** Seconds, of processors but for the first. */
export interface Use {
  /** Of the clock. */
  readonly seconds: number;
  /** Of the workers' processes; of their event loops alone, which are part of it. */
  readonly workers: number;
  readonly loops: number;
  /** Of all that runs below the workers: sandboxes and templates. */
  readonly sandboxes: number;
  readonly broker: number;
  /** Of this process, which makes the calls; of its event loop alone. */
  readonly client: number;
  readonly clientLoop: number;
  /** Of everything on the machine, the parts above included. */
  readonly machine: number;
}

/** Where the parts are. */
export interface Parts {
  readonly workers: readonly { readonly pid: number }[];
  readonly workersGroup: ProcessorGroup;
  readonly brokerGroup: ProcessorGroup;
}

/** What all parts have taken so far. */
export async function look({ workers, workersGroup, brokerGroup }: Parts): Promise<Use> {
  const processes = await Promise.all(workers.map(({ pid }) => processSeconds(pid)));
  const own = sum(processes.map(({ all }) => all));
  return {
    seconds: performance.now() / 1000,
    workers: own,
    loops: sum(processes.map(({ loop }) => loop)),
    sandboxes: workersGroup.seconds - own,
    broker: brokerGroup.seconds,
    client: total(process.cpuUsage()),
    clientLoop: total(process.threadCpuUsage()),
    machine: await machineSeconds(),
  };
}

/** What they took between two looks. */
export function useBetween(from: Use, to: Use): Use {
  return {
    seconds: to.seconds - from.seconds,
    workers: to.workers - from.workers,
    loops: to.loops - from.loops,
    sandboxes: to.sandboxes - from.sandboxes,
    broker: to.broker - from.broker,
    client: to.client - from.client,
    clientLoop: to.clientLoop - from.clientLoop,
    machine: to.machine - from.machine,
  };
}

/** What of it is the benchmark's. */
export function ownSeconds(use: Use): number {
  return use.workers + use.sandboxes + use.broker + use.client;
}

/** Processors that other programs left, of so many. */
export function availableCores(use: Use, cores: number): number {
  return Math.max(0, cores - (use.machine - ownSeconds(use)) / use.seconds);
}

function total({ user, system }: NodeJS.CpuUsage): number {
  return (user + system) / microsecondsPerSecond;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((all, each) => all + each, 0);
}
