/**
 * The calls a second that workers of one group answer when there are always more.
 */
import { type LoopOptions, Rig, type RigOptions } from "./rig.ts";
import { type Use, availableCores } from "./use.ts";

/** Slots of each worker. */
export const slots = 4;
/** Calls of each worker that wait for a slot, beside the running ones. */
const waiting = 4;
const times = { warmUpMs: 2_000, windowMs: 8_000 };
/** Calls of each worker before those that count: by then most of its code is compiled. */
const warmUpCalls = 100;

/** What so many workers answered. */
export interface Saturation {
  readonly workers: number;
  readonly slots: number;
  readonly callers: number;
  readonly calls: number;
  /** Calls that found an idle sandbox. */
  readonly hits: number;
  readonly use: Use;
  /** Processors that other programs left. */
  readonly availableCores: number;
}

/** Starts workers and measures their calls. */
export async function saturate(
  options: Omit<RigOptions, "slots">,
  cores: number,
): Promise<Saturation> {
  const { workers } = options;
  await using rig = await Rig.start({ ...options, slots });
  await rig.quiet();
  const callers = workers * (slots + waiting);
  const loop: LoopOptions = { ...times, callers, warmUpCalls: warmUpCalls * workers };
  const { calls, hits, ...use } = await rig.loop(loop);
  const left = availableCores(use, cores);
  return { workers, slots, callers, calls, hits, use, availableCores: left };
}
