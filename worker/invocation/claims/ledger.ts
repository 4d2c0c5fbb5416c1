/**
 * The ledger of a worker's running and answered calls, so that a redelivered call runs once.
 */
import { hash } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { Delivery } from "../../broker/broker.ts";
import type { Clock } from "../../support/clock.ts";
import type { EncodedResponse } from "../answers.ts";

/** Most remembered answers; the ledger drops the least recently used. */
export const maxRememberedAnswers = 10_000;

/** Bytes of all remembered answers; the ledger drops the least recently used. */
export const maxRememberedBytes = 32 * 1024 * 1024;

/** Lifetime of an answer in milliseconds: longer than reconnecting and redelivery take. */
export const rememberedMs = 15 * 60_000;

/** Milliseconds between two removals of expired answers: each looks at all of them. */
const removalMs = 60_000;

/** Most unsettled deliveries of one running call; the ledger settles the oldest beyond. */
export const maxDeliveriesOfCall = 16;

/**
 * Deduplication key of a delivery: SHA-256 of reply topic, topic and payload. JSON-RPC ids are not
 * unique across callers, nor across restarts of one.
 */
export function deduplicationKey(
  { topic, payload }: Pick<Delivery, "topic" | "payload">,
  replyTo: string,
): string {
  // Reply topics have no control characters, so the separator is unambiguous.
  const addresses = Buffer.from(`${replyTo}\n${topic}\n`);
  return hash("sha256", Buffer.concat([addresses, payload]), "base64");
}

/** State of a call when a delivery of it arrives. */
export type KnownCall =
  /** The caller of `receive` handles the call and ends the entry. */
  | { readonly state: "new"; readonly entry: RunningEntry }
  /** The delivery is settled with the running call. */
  | { readonly state: "running" }
  | { readonly state: "answered"; readonly response: EncodedResponse };

/** A running call. Its handler disposes it, which removes a call that did not end. */
export interface RunningEntry extends Disposable {
  /** Whether all connections that delivered the call are lost, so that the broker redelivers. */
  isLost(): boolean;
  /** Whether later deliveries replaced the first, so that another worker may have run the call. */
  cameAgain(): boolean;
  /** Remembers the answer. Returns the deliveries for the caller to settle. */
  end(remembered: EncodedResponse | undefined): readonly Delivery[];
}

/** In memory. The consumer bounds the running calls. */
export class Ledger {
  /** Deliveries by call, in order of arrival. */
  readonly #running = new Map<string, Set<Delivery>>();
  readonly #answered: LRUCache<string, EncodedResponse>;
  readonly #clock: Pick<Clock, "monotonicMs">;
  #removalAtMs: number;

  constructor(clock: Pick<Clock, "monotonicMs">) {
    this.#clock = clock;
    this.#removalAtMs = clock.monotonicMs() + removalMs;
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

  /** Replaces the remembered answer without extending its lifetime. */
  update(key: string, response: EncodedResponse): void {
    if (this.#answered.has(key)) this.#answered.set(key, response, { noUpdateTTL: true });
  }

  #remember(key: string, response: EncodedResponse): void {
    const nowMs = this.#clock.monotonicMs();
    if (nowMs >= this.#removalAtMs) {
      this.#removalAtMs = nowMs + removalMs;
      this.#answered.purgeStale();
    }
    this.#answered.set(key, response);
  }

  #open(key: string, first: Delivery): RunningEntry {
    const deliveries = new Set([first]);
    this.#running.set(key, deliveries);
    let isOpen = true;
    const end = (remembered: EncodedResponse | undefined): readonly Delivery[] => {
      if (!isOpen) return [];
      isOpen = false;
      this.#running.delete(key);
      if (remembered !== undefined) this.#remember(key, remembered);
      return [...deliveries];
    };
    const isLost = (): boolean => [...deliveries].every((delivery) => delivery.isLost === true);
    const cameAgain = (): boolean => !deliveries.has(first);
    return { isLost, cameAgain, end, [Symbol.dispose]: () => void end(undefined) };
  }
}

/** Settling a lost delivery has no effect at the broker. */
function settleLost(delivery: Delivery): void {
  delivery.settle("accepted").catch(() => undefined);
}
