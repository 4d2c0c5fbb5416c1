/**
 * Cancels of callers: they stop the calls in this worker, and wait for calls that come later.
 */
import { hash } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { Canceller } from "../../protocol/invocation.ts";
import type { Clock } from "../../support/clock.ts";
import { type EventLog, logEvent } from "../../telemetry/log-event.ts";

/** Most remembered cancels; the least recently received goes first. */
export const maxRememberedCancels = 10_000;

/** Lifetime of a remembered cancel in milliseconds: calls wait in queues that long at most. */
export const rememberedCancelMs = 15 * 60_000;

/** Reason of the signals of cancelled calls. */
export class CancelledByCaller extends Error {
  constructor() {
    super("the caller cancelled the call");
    this.name = "CancelledByCaller";
  }
}

/** Reason of the signals of calls that a user of the console cancels. */
export class CancelledByOperator extends Error {
  constructor() {
    super("an operator cancelled the call");
    this.name = "CancelledByOperator";
  }
}

/** Who cancelled a call, by the reason of its signal. */
export function cancelledBy({ reason }: Pick<AbortSignal, "reason">): Canceller {
  return reason instanceof CancelledByOperator ? "operator" : "caller";
}

/** Who sent a message, by what the message says. */
export interface MessageSender {
  readonly replyTo: string | undefined;
  /** The agent, by its own words. */
  readonly clientId: string | undefined;
  /** The user that the broker has verified. */
  readonly user: string | undefined;
}

/** A call that its caller can cancel. */
export interface CancellableCall {
  /** What agents call it in the topic of a cancel; more than one where they may choose. */
  readonly correlationIds: readonly string[];
  readonly sender: MessageSender;
}

/** A call in this worker. Its handler disposes it. */
export interface CancellableEntry extends Disposable {
  /** Aborts with CancelledByCaller; has aborted for a call whose cancel came before it. */
  readonly signal: AbortSignal;
  /** Aborts the signal with CancelledByOperator. Idempotent. */
  cancel(): void;
}

interface RunningCall {
  readonly keys: () => readonly string[];
  readonly cancelling: AbortController;
}

/** In memory. The consumer bounds the running calls. */
export class Cancels {
  readonly #log: EventLog<"debug">;
  readonly #remembered: LRUCache<string, true>;
  /** By correlation id. */
  readonly #running = new Map<string, Set<RunningCall>>();
  #ignored = 0;

  constructor(clock: Pick<Clock, "monotonicMs">, log: EventLog<"debug">) {
    this.#log = log;
    this.#remembered = new LRUCache({
      // Two keys for the cancel of a verified user. A size, since `max` takes its memory at once.
      maxSize: 2 * maxRememberedCancels,
      sizeCalculation: () => 1,
      ttl: rememberedCancelMs,
      ttlResolution: 0,
      perf: { now: () => clock.monotonicMs() },
    });
  }

  /** Registers a call until the disposal of the entry. */
  open({ correlationIds, sender }: CancellableCall): CancellableEntry {
    const keys = (): readonly string[] => correlationIds.flatMap((id) => keysOfCall(id, sender));
    const call = { keys, cancelling: new AbortController() };
    // Digests take a while, and cancels are rare.
    const mayBeCancelled = this.#remembered.size > 0;
    if (mayBeCancelled && keys().some((key) => this.#remembered.has(key))) cancel(call);
    for (const id of correlationIds) {
      const calls = this.#running.get(id) ?? new Set();
      this.#running.set(id, calls.add(call));
    }
    const close = (): void => {
      for (const id of correlationIds) {
        const calls = this.#running.get(id);
        if (calls?.delete(call) && calls.size === 0) this.#running.delete(id);
      }
    };
    return {
      signal: call.cancelling.signal,
      cancel: () => call.cancelling.abort(new CancelledByOperator()),
      [Symbol.dispose]: close,
    };
  }

  /** Cancels the calls of this sender, present and to come. */
  receive(correlationId: string, sender: MessageSender): void {
    const keys = keysOfCancel(correlationId, sender);
    for (const key of keys) this.#remembered.set(key, true);
    for (const call of this.#running.get(correlationId) ?? []) {
      const keysOfThis = call.keys();
      if (keys.some((key) => keysOfThis.includes(key))) cancel(call);
      else logEvent(this.#log, "cancel.ignored", { correlationId, ignored: ++this.#ignored });
    }
  }
}

function cancel({ cancelling }: RunningCall): void {
  cancelling.abort(new CancelledByCaller());
}

/**
 * Keys of the cancels that this sender may send: it may leave out `replyTo` or `clientId`, but not
 * a verified user that its call has.
 */
function keysOfCall(id: string, { replyTo, clientId, user }: MessageSender): readonly string[] {
  const senders = [
    { replyTo, clientId, user },
    { replyTo, clientId: undefined, user },
    { replyTo: undefined, clientId, user },
  ];
  return senders.flatMap((sender) => (isAnonymous(sender) ? [] : [keyOf(id, sender)]));
}

/** A cancel of a verified user also fits calls without one. */
function keysOfCancel(id: string, sender: MessageSender): readonly string[] {
  if (isAnonymous(sender)) return [];
  const unverified = keyOf(id, { ...sender, user: undefined });
  return sender.user === undefined ? [unverified] : [keyOf(id, sender), unverified];
}

function isAnonymous({ replyTo, clientId }: MessageSender): boolean {
  return replyTo === undefined && clientId === undefined;
}

/** A digest: names may be long. */
function keyOf(id: string, { replyTo, clientId, user }: MessageSender): string {
  const parts = [id, replyTo, clientId, user].map((part) => part ?? null);
  return hash("sha256", JSON.stringify(parts), "base64");
}
