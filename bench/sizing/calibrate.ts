/**
 * What one call costs: of one worker with one slot, so that no call waits for a processor that
 * another one has. Processor time is taken while all processors are busy, by programs that yield:
 * processors share caches and units, and do less in a second when their neighbours work.
 */
import { systemClock } from "../../worker/support/clock.ts";
import { quantile } from "../measure.ts";
import type { CallCosts, MemoryCosts } from "./model.ts";
import { fillProcessors } from "./filler.ts";
import { type LoopOptions, Rig, type RigOptions } from "./rig.ts";
import { type Use, ownSeconds, useBetween } from "./use.ts";

/** One call in the slot, and one that waits for it. */
const loop: LoopOptions = { callers: 2, warmUpCalls: 50, warmUpMs: 1_000, windowMs: 5_000 };
/** Milliseconds without calls. */
const idleMs = 3_000;
/** A call of so many seconds, and the part of it that is looked at. */
const watch = { seconds: 4, fromMs: 500, windowMs: 3_000 };
/** Refills of which the median counts. */
const refills = 9;

/** What a tool's calls cost, and what its worker uses without calls. */
export interface Calibration {
  readonly costs: CallCosts;
  readonly memory: MemoryCosts;
  /** From the start of a call until as many sandboxes are idle as before. */
  readonly refillSeconds: number;
  /** Processors that a worker with its templates uses without calls; broker and caller. */
  readonly idleWorkerCores: number;
  readonly idleOtherCores: number;
  /** Processors that other programs used meanwhile. */
  readonly otherCores: number;
}

/** Starts a worker and measures its calls. */
export async function calibrate(
  options: Omit<RigOptions, "workers" | "slots">,
): Promise<Calibration> {
  await using rig = await Rig.start({ ...options, workers: 1, slots: 1 });
  const memory = await measureMemory(rig);
  const refillSeconds = await measureRefill(rig);
  const idle = await measureIdle(rig);
  const watch = await measureWatch(rig, idle);
  const quietly = await rig.loop(loop);
  using _filled = fillProcessors();
  const { calls, hits: _hits, ...use } = await rig.loop(loop);
  const perCall = (part: keyof Use): number =>
    Math.max(0, use[part] - (idle[part] / idle.seconds) * use.seconds) / calls;
  return {
    costs: {
      slotSeconds: quietly.seconds / quietly.calls,
      worker: perCall("workers"),
      loop: perCall("loops"),
      sandbox: perCall("sandboxes"),
      broker: perCall("broker"),
      client: perCall("client"),
      clientLoop: perCall("clientLoop"),
      watch,
    },
    memory,
    refillSeconds,
    idleWorkerCores: (idle.workers + idle.sandboxes) / idle.seconds,
    idleOtherCores: (idle.broker + idle.client) / idle.seconds,
    otherCores: (quietly.machine - ownSeconds(quietly)) / quietly.seconds,
  };
}

async function measureIdle(rig: Rig): Promise<Use> {
  await rig.quiet();
  const from = await rig.look();
  await systemClock.sleep(idleMs);
  return useBetween(from, await rig.look());
}

/** Processors that one running call takes of the worker, though it only waits. */
async function measureWatch(rig: Rig, idle: Use): Promise<number> {
  const running = rig.call({ seconds: watch.seconds });
  await systemClock.sleep(watch.fromMs);
  const from = await rig.look();
  await systemClock.sleep(watch.windowMs);
  const use = useBetween(from, await rig.look());
  await running;
  const cores = (of: Use): number => (of.workers + of.sandboxes) / of.seconds;
  return Math.max(0, cores(use) - cores(idle));
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
  const sorted = times.toSorted((a, b) => a - b);
  return quantile(sorted, 0.5) / 1000;
}

/**
 * A worker that has one idle sandbox, and again once calls have made more sandboxes idle; the peak
 * of a call is in its answer.
 */
async function measureMemory(rig: Rig): Promise<MemoryCosts> {
  await rig.quiet();
  const first = await rig.idle();
  const running = await rig.call();
  await rig.loop({ ...loop, windowMs: 0 });
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
