/**
 * What one call costs: of one worker with one slot, so that no call waits for a processor that
 * another one has.
 */
import { systemClock } from "../../worker/support/clock.ts";
import { quantile } from "../measure.ts";
import type { CallCosts, MemoryCosts } from "./model.ts";
import { type LoopOptions, Rig, type RigOptions } from "./rig.ts";
import { type Use, ownSeconds, useBetween } from "./use.ts";

/** One call in the slot, and one that waits for it. */
const loop: LoopOptions = { callers: 2, warmUpCalls: 100, warmUpMs: 1_000, windowMs: 6_000 };
/** Milliseconds without calls. */
const idleMs = 3_000;
/** Seconds of a call whose memory is looked at, and milliseconds until then. */
const runningSeconds = 1;
const runningLookMs = 700;
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
  const { calls, hits: _hits, ...use } = await rig.loop(loop);
  const idle = await measureIdle(rig);
  const perCall = (part: keyof Use): number =>
    Math.max(0, use[part] - (idle[part] / idle.seconds) * use.seconds) / calls;
  return {
    costs: {
      slotSeconds: use.seconds / calls,
      worker: perCall("workers"),
      loop: perCall("loops"),
      sandbox: perCall("sandboxes"),
      broker: perCall("broker"),
      client: perCall("client"),
      clientLoop: perCall("clientLoop"),
    },
    memory,
    refillSeconds,
    idleWorkerCores: (idle.workers + idle.sandboxes) / idle.seconds,
    idleOtherCores: (idle.broker + idle.client) / idle.seconds,
    otherCores: (use.machine - ownSeconds(use)) / use.seconds,
  };
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
  const sorted = times.toSorted((a, b) => a - b);
  return quantile(sorted, 0.5) / 1000;
}

/**
 * A worker that has one idle sandbox, the same while a call runs, and once calls have made more
 * sandboxes idle.
 */
async function measureMemory(rig: Rig): Promise<MemoryCosts> {
  await rig.quiet();
  const first = await rig.idle();
  const before = await rig.memory();
  const running = rig.call({ seconds: runningSeconds });
  await systemClock.sleep(runningLookMs);
  const [during, left] = [await rig.memory(), await rig.idle()];
  await running;
  await rig.loop({ ...loop, windowMs: 0 });
  await rig.quiet();
  const last = await rig.idle();
  const more = last.count - first.count;
  const idle = more > 0 ? (last.bytes - first.bytes) / more : first.bytes / (first.count || 1);
  return {
    worker: (await rig.memory()).workers,
    template: Math.max(0, first.bytes - first.count * idle),
    idle,
    running: during.sandboxes - before.sandboxes + (first.count - left.count) * idle,
  };
}
