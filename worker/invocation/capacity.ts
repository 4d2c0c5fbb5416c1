/**
 * Room for one more call: a slot, and free disk.
 */
import { statfs } from "node:fs/promises";
import { InvocationError } from "../protocol/errors.ts";
import type { Clock } from "../support/clock.ts";
import { type Slots, SlotsFullError } from "../support/slots.ts";
import type { Logger } from "../telemetry/logger.ts";
import { type CallTimes, TimeLimitReached, remainingLimitMs } from "./limits.ts";

/** What there is. */
export interface CapacityParts {
  readonly slots: Slots;
  readonly clock: Clock;
  /** Directory whose file system must have `minFreeDiskBytes` free. */
  readonly workBase: string;
  readonly minFreeDiskBytes: number;
}

/** What ends the waiting. */
interface WaitContext {
  readonly signal: AbortSignal;
  readonly waitSignal: AbortSignal;
  readonly log: Logger;
}

/**
 * Waits for a slot, as long as a tool that then starts could still be answered. The caller gives it back. Throws
 * InvocationError `RESOURCE_EXHAUSTED` when too many wait, TimeLimitReached when the time is over.
 */
export async function leaseSlot(
  { slots, clock }: Pick<CapacityParts, "slots" | "clock">,
  times: CallTimes,
  { signal, waitSignal, log }: WaitContext,
): Promise<Disposable> {
  const waitMs = remainingLimitMs(times, clock.nowMs());
  if (waitMs <= 0) throw new TimeLimitReached();
  // Not the agent's own deadline: the answer must still find it waiting.
  const over = AbortSignal.timeout(waitMs);
  const { inUse, capacity, waiting } = slots;
  if (inUse === capacity) log.debug({ running: inUse, waiting }, "no slot is free");
  try {
    return await slots.acquire(AbortSignal.any([signal, waitSignal, over]));
  } catch (error) {
    if (error instanceof SlotsFullError) {
      throw new InvocationError(
        "RESOURCE_EXHAUSTED",
        `The worker is busy: ${slots.capacity} calls run and ${error.maxWaiting} wait already`,
        { cause: error },
      );
    }
    if (error === over.reason) throw new TimeLimitReached();
    throw error;
  }
}

/** Throws InvocationError `RESOURCE_EXHAUSTED` when the file system of work directories is too full. */
export async function requireFreeDisk({
  workBase,
  minFreeDiskBytes,
}: Pick<CapacityParts, "workBase" | "minFreeDiskBytes">): Promise<void> {
  const free = await freeBytes(workBase);
  if (free >= minFreeDiskBytes) return;
  throw new InvocationError(
    "RESOURCE_EXHAUSTED",
    `Insufficient disk space to execute the tool: ${free} bytes are free, ${minFreeDiskBytes} are needed`,
  );
}

/** Bytes that are free on the file system of a directory. */
export async function freeBytes(directory: string): Promise<number> {
  const { bavail, bsize } = await statfs(directory);
  return bavail * bsize;
}
