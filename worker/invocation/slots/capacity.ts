/**
 * Capacity for one more call: a slot, and free disk.
 */
import { statfs } from "node:fs/promises";
import type { ToolEntry } from "../../manifest/manifest.ts";
import { InvocationError } from "../../protocol/errors.ts";
import type { Invocation } from "../../protocol/invocation.ts";
import type { Clock } from "../../support/clock.ts";
import { type Priority, type Semaphore, SemaphoreFullError } from "../../support/semaphore.ts";
import { logEvent } from "../../telemetry/log-event.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { CallContext } from "../call-context.ts";
import { type CallTimes, TimeLimitReached, remainingLimitMs } from "../limits.ts";
import { type LentSlots, CallSlot } from "./call-slot.ts";

/** Milliseconds for which a sample of the disk is valid. */
const maxSampleAgeMs = 200;

/** Dependencies: slots and disk. */
export interface CapacityParts {
  /** The slots of a queue. */
  readonly slotsOf: (queue: string) => Semaphore;
  readonly lentSlots: LentSlots;
  readonly clock: Clock;
  /** The file system of work directories, which must have `minFreeDiskBytes` free. */
  readonly disk: FreeDisk;
  readonly minFreeDiskBytes: number;
}

/** Which calls go first: those by tools of this worker, then those by tools of others. */
export function priorityOf(
  { depth = 0 }: Pick<Invocation, "depth">,
  { isInner = false }: Pick<CallContext, "isInner">,
): Priority {
  if (isInner) return "inner";
  return depth > 0 ? "nested" : "new";
}

/** Signals that end the wait. */
interface WaitContext {
  readonly signal: AbortSignal;
  readonly waitSignal: AbortSignal;
  readonly log: Logger;
  /** Calls by tools go first, so that workers which call each other come to an end. */
  readonly priority: Priority;
}

/**
 * Waits for a slot while an answer can still arrive in time. A new call that may lend its slot
 * first waits until it could. The caller disposes it. Throws InvocationError `RESOURCE_EXHAUSTED`
 * when too many calls wait, or TimeLimitReached.
 */
export async function leaseSlot(
  { slotsOf, lentSlots, clock }: Pick<CapacityParts, "slotsOf" | "lentSlots" | "clock">,
  { queue, gateway }: Pick<ToolEntry, "queue" | "gateway">,
  times: CallTimes,
  context: WaitContext,
): Promise<CallSlot> {
  const waitMs = (): number => remainingLimitMs(times, clock.nowMs());
  if (waitMs() <= 0) throw new TimeLimitReached();
  const { signal, waitSignal, priority } = context;
  for (const { aborted, reason } of [signal, waitSignal]) if (aborted) throw reason;
  const slots = slotsOf(queue);
  // Calls by tools do not wait: those that they would wait for may wait for them.
  const mayLend = gateway !== undefined && priority === "new";
  using stack = new DisposableStack();
  const permit = mayLend ? stack.use(await acquire(lentSlots.lenders, waitMs, context)) : undefined;
  const lease = await acquire(slots, waitMs, context);
  stack.move();
  return new CallSlot(slots, lentSlots, lease, permit);
}

async function acquire(
  permits: Semaphore,
  waitMs: () => number,
  { signal, waitSignal, log, priority }: WaitContext,
): Promise<Disposable> {
  const free = permits.tryAcquire();
  if (free !== undefined) return free;
  // Before the agent's deadline, so that the answer arrives in time.
  const over = AbortSignal.timeout(Math.max(0, waitMs()));
  logEvent(log, "call.no_free_slot", { running: permits.inUse, waiting: permits.waiting });
  try {
    return await permits.acquire(AbortSignal.any([signal, waitSignal, over]), priority);
  } catch (error) {
    if (error instanceof SemaphoreFullError) {
      throw new InvocationError(
        "RESOURCE_EXHAUSTED",
        `The worker is busy: ${permits.capacity} calls run and ${error.maxWaiting} wait already`,
        { cause: error },
      );
    }
    if (error === over.reason) throw new TimeLimitReached();
    throw error;
  }
}

/** Throws InvocationError `RESOURCE_EXHAUSTED` below the least free space for work directories. */
export async function requireFreeDisk({
  disk,
  minFreeDiskBytes,
}: Pick<CapacityParts, "disk" | "minFreeDiskBytes">): Promise<void> {
  const free = await disk.bytes();
  if (free >= minFreeDiskBytes) return;
  throw new InvocationError(
    "RESOURCE_EXHAUSTED",
    `Insufficient disk space to execute the tool: ${free} bytes are free, ${minFreeDiskBytes} are needed`,
  );
}

/** Free bytes on the file system of a directory, sampled every 200 ms at most. */
export class FreeDisk {
  readonly #directory: string;
  readonly #clock: Pick<Clock, "monotonicMs">;
  #freeBytes = 0;
  /** On the monotonic clock. */
  #sampledAtMs = -Infinity;
  #sampling: Promise<void> | undefined;

  constructor(directory: string, clock: Pick<Clock, "monotonicMs">) {
    this.#directory = directory;
    this.#clock = clock;
  }

  /** Begins the sample for which `bytes` would wait. */
  sampleAhead(): void {
    if (this.#ageMs > maxSampleAgeMs) void this.#sample().catch(() => undefined);
  }

  /** Waits for a new sample when the last is too old; refreshes ahead at half that age. */
  async bytes(): Promise<number> {
    const ageMs = this.#ageMs;
    if (ageMs > maxSampleAgeMs) await this.#sample();
    // The call goes first.
    else if (ageMs > maxSampleAgeMs / 2)
      setImmediate(() => void this.#sample().catch(() => undefined));
    return this.#freeBytes;
  }

  get #ageMs(): number {
    return this.#clock.monotonicMs() - this.#sampledAtMs;
  }

  #sample(): Promise<void> {
    this.#sampling ??= this.#statfs().finally(() => (this.#sampling = undefined));
    return this.#sampling;
  }

  async #statfs(): Promise<void> {
    const { bavail, bsize } = await statfs(this.#directory);
    this.#freeBytes = bavail * bsize;
    this.#sampledAtMs = this.#clock.monotonicMs();
  }
}
