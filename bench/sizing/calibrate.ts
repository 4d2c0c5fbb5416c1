/**
 * What one call costs, of one worker. One call at a time gives the time in the slot: it waits for
 * no processor. As many as keep the processors busy give the processor time, since the processors
 * then share caches and units, as they do under full load.
 */
import { systemClock } from "../../worker/support/clock.ts";
import { quantile } from "../measure.ts";
import type { Kind } from "./kinds.ts";
import type { CallCosts, MemoryCosts } from "./model.ts";
import { type LoopOptions, Rig, type RigOptions } from "./rig.ts";
import { type Use, ownSeconds, useBetween } from "./use.ts";

/** As many calls wait for a slot as there are slots. */
const loop = { warmUpCalls: 100, warmUpMs: 500, windowMs: 4_000 };
const single: LoopOptions = { ...loop, callers: 2 };
/** Milliseconds without calls: a shorter look scatters by half. */
const idleMs = 8_000;
/** Refills of which the median counts. */
const refills = 9;
/** Calls at once, of which one finds an idle sandbox; they last longer than all take to start. */
const burst = { calls: 8, seconds: 0.3, times: 9 };

/** Processor seconds of one call. */
export type ProcessorCosts = Omit<CallCosts, "slotSeconds" | "templateSeconds">;

/** What a tool's calls take besides processors, and what its worker uses without calls. */
export interface Calibration {
  readonly slotSeconds: number;
  readonly templateSeconds: number;
  readonly memory: MemoryCosts;
  /** From the start of a call until as many sandboxes are idle as before. */
  readonly refillSeconds: number;
  /** Processors that a worker with its templates uses without calls; broker and caller. */
  readonly idleWorkerCores: number;
  readonly idleOtherCores: number;
}

type CalibrateOptions = Omit<RigOptions, "workers" | "slots">;

/** Starts workers, one after the other, and measures calls of their own. */
export async function calibrate(options: CalibrateOptions): Promise<Calibration> {
  const { slotSeconds, memory, refillSeconds, idle } = await measureOne(options);
  return {
    slotSeconds,
    templateSeconds: options.kind.tool.start === "template" ? await measureTemplate(options) : 0,
    memory,
    refillSeconds,
    idleWorkerCores: (idle.workers + idle.sandboxes) / idle.seconds,
    idleOtherCores: (idle.broker + idle.client) / idle.seconds,
  };
}

/** A worker with slots that keep processors busy, apart from others. The caller disposes it. */
export async function startReference(options: CalibrateOptions): Promise<Rig> {
  const { kind } = options;
  const own = { workers: 1, slots: kind.busySlots, namespace: "reference" };
  return Rig.start({ ...options, ...own });
}

/** Measures what calls of a reference cost. */
export async function measureProcessors(
  reference: Rig,
  slots: number,
  { idleWorkerCores, idleOtherCores }: Calibration,
): Promise<ProcessorCosts> {
  await reference.quiet();
  const { calls, hits: _hits, ...use } = await reference.loop({ ...loop, callers: 2 * slots });
  const idleCores = idleWorkerCores + idleOtherCores;
  const share = Math.max(0, 1 - (idleCores * use.seconds) / ownSeconds(use)) / calls;
  return {
    worker: use.workers * share,
    loop: use.loops * share,
    sandbox: use.sandboxes * share,
    broker: use.broker * share,
    client: use.client * share,
    clientLoop: use.clientLoop * share,
  };
}

/** The mean of measured costs. */
export function meanCosts(measured: readonly ProcessorCosts[]): ProcessorCosts {
  const mean = (part: keyof ProcessorCosts): number =>
    measured.reduce((sum, costs) => sum + costs[part], 0) / measured.length;
  return {
    worker: mean("worker"),
    loop: mean("loop"),
    sandbox: mean("sandbox"),
    broker: mean("broker"),
    client: mean("client"),
    clientLoop: mean("clientLoop"),
  };
}

/** One call at a time, and none. */
async function measureOne(options: CalibrateOptions): Promise<{
  readonly slotSeconds: number;
  readonly memory: MemoryCosts;
  readonly refillSeconds: number;
  readonly idle: Use;
}> {
  await using rig = await Rig.start({ ...options, workers: 1, slots: 1 });
  const memory = await measureMemory(rig);
  const refillSeconds = await measureRefill(rig);
  const idle = await measureIdle(rig);
  const { seconds, calls } = await rig.loop(single);
  return { slotSeconds: seconds / calls, memory, refillSeconds, idle };
}

/**
 * Seconds from one sandbox of a template to the next: calls that find none idle start, and are
 * answered, in their order.
 */
async function measureTemplate(options: CalibrateOptions): Promise<number> {
  const tool = { ...options.kind.tool, maxWarm: 1 };
  const kind: Kind = { ...options.kind, tool, args: { seconds: burst.seconds } };
  await using rig = await Rig.start({ ...options, kind, workers: 1, slots: burst.calls });
  const times: number[] = [];
  for (let n = 1; n <= burst.times; n++) {
    await rig.quiet();
    const answeredMs: number[] = [];
    const calls = Array.from({ length: burst.calls }, async () => {
      await rig.call();
      answeredMs.push(systemClock.monotonicMs());
    });
    await Promise.all(calls);
    const [first = 0, last = 0] = [answeredMs[0], answeredMs.at(-1)];
    times.push((last - first) / (burst.calls - 1));
  }
  return median(times) / 1000;
}

async function measureIdle(rig: Rig): Promise<Use> {
  await rig.quiet();
  const from = await rig.look();
  await systemClock.sleep(idleMs);
  return useBetween(from, await rig.look());
}

async function measureRefill(rig: Rig): Promise<number> {
  const times: number[] = [];
  for (let n = 1; n <= refills; n++) {
    await rig.quiet();
    const startMs = systemClock.monotonicMs();
    await rig.call({});
    await rig.quiet();
    times.push(systemClock.monotonicMs() - startMs);
  }
  return median(times) / 1000;
}

function median(times: readonly number[]): number {
  return quantile(
    times.toSorted((a, b) => a - b),
    0.5,
  );
}

/**
 * A worker that has one idle sandbox, and again once calls have made more sandboxes idle; the peak
 * of a call is in its answer.
 */
async function measureMemory(rig: Rig): Promise<MemoryCosts> {
  await rig.quiet();
  const first = await rig.idle();
  const running = await rig.call();
  await rig.loop({ ...single, windowMs: 0 });
  await rig.quiet();
  const last = await rig.idle();
  const more = last.count - first.count;
  const idle = more > 0 ? (last.bytes - first.bytes) / more : first.bytes / (first.count || 1);
  return {
    worker: await rig.memory(),
    template: Math.max(0, first.bytes - first.count * idle),
    idle,
    running,
  };
}
