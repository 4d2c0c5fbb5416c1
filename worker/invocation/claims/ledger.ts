/**
 * The ledger of a worker's running and answered calls: a redelivered call does not run again.
 */
import { createHash } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { Delivery } from "../../broker/broker.ts";
import type { Clock } from "../../support/clock.ts";
import type { EncodedResponse } from "../answers.ts";

/** Answers that are remembered at most; the least recently used are dropped. */
export const maxRememberedAnswers = 10_000;

/** Bytes of all remembered answers; the least recently used are dropped. */
export const maxRememberedBytes = 32 * 1024 * 1024;

/**
 * Milliseconds for which an answer is remembered: longer than a broker takes to redeliver what a
 * lost connection left, and a worker to connect again.
 */
export const rememberedMs = 15 * 60_000;

/** Deliveries of one running call that are settled with it; the oldest beyond that, before. */
export const maxDeliveriesOfCall = 16;

/**
 * Deduplication key of a delivery: SHA-256 of reply topic, topic and payload. JSON-RPC ids are not
 * unique across callers, nor across restarts of one.
 */
export function deduplicationKey(
  { topic, payload }: Pick<Delivery, "topic" | "payload">,
  replyTo: string,
): string {
  // No topic that a call is answered on has a control character.
  return createHash("sha256").update(`${replyTo}\n${topic}\n`).update(payload).digest("base64");
}

/** State of a call when a delivery of it arrives. */
export type KnownCall =
  /** Unknown: the caller handles the call and ends the entry. */
  | { readonly state: "new"; readonly entry: RunningEntry }
  /** This worker handles it; the delivery is settled with the call. */
  | { readonly state: "running" }
  /** This worker has answered it. */
  | { readonly state: "answered"; readonly response: EncodedResponse };

/** A running call, owned by its handler. Disposing forgets a call that was not ended. */
export interface RunningEntry extends Disposable {
  /** Whether every connection that delivered the call is lost, so that the broker redelivers it. */
  isLost(): boolean;
  /** Whether the call was delivered again, so that another worker may have run it meanwhile. */
  cameAgain(): boolean;
  /** Ends the call with the answer to remember. Returns its deliveries, which the caller settles. */
  end(remembered: EncodedResponse | undefined): readonly Delivery[];
}

/** The ledger of one worker, in memory. The consumer bounds the running calls. */
export class Ledger {
  /** Deliveries of each call, in the order of their arrival. */
  readonly #running = new Map<string, Set<Delivery>>();
  readonly #answered: LRUCache<string, EncodedResponse>;

  constructor(clock: Pick<Clock, "monotonicMs">) {
    this.#answered = new LRUCache({
      max: maxRememberedAnswers,
      maxSize: maxRememberedBytes,
      sizeCalculation: ({ payload }) => Math.max(1, payload.byteLength),
      ttl: rememberedMs,
      ttlResolution: 0,
      perf: { now: () => clock.monotonicMs() },
    });
  }

  /** Answers in memory, expired ones included. */
  get remembered(): number {
    return this.#answered.size;
  }

  /** Whether a call is being handled here. */
  isRunning(key: string): boolean {
    return this.#running.has(key);
  }

  /** Records a delivery. Returns the state of its call. */
  receive(key: string, delivery: Delivery): KnownCall {
    const deliveries = this.#running.get(key);
    if (deliveries !== undefined) {
      deliveries.add(delivery);
      for (const former of deliveries) {
        const isOneTooMany = deliveries.size > maxDeliveriesOfCall;
        if (former.isLost !== true && !isOneTooMany) continue;
        deliveries.delete(former);
        settleLost(former);
      }
      return { state: "running" };
    }
    const response = this.#answered.get(key);
    if (response !== undefined) return { state: "answered", response };
    return { state: "new", entry: this.#open(key, delivery) };
  }

  /** Replaces the remembered answer of a call, which is remembered no longer for that. */
  update(key: string, response: EncodedResponse): void {
    if (this.#answered.has(key)) this.#answered.set(key, response, { noUpdateTTL: true });
  }

  #open(key: string, first: Delivery): RunningEntry {
    const deliveries = new Set([first]);
    this.#running.set(key, deliveries);
    let isOpen = true;
    const end = (remembered: EncodedResponse | undefined): readonly Delivery[] => {
      if (!isOpen) return [];
      isOpen = false;
      this.#running.delete(key);
      if (remembered !== undefined) this.#answered.set(key, remembered);
      return [...deliveries];
    };
    const isLost = (): boolean => [...deliveries].every((delivery) => delivery.isLost === true);
    const cameAgain = (): boolean => !deliveries.has(first);
    return { isLost, cameAgain, end, [Symbol.dispose]: () => void end(undefined) };
  }
}

/** A lost delivery cannot be settled: the broker has redelivered it. */
function settleLost(delivery: Delivery): void {
  delivery.settle("accepted").catch(() => undefined);
}
