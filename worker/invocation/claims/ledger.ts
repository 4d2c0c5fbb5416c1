/**
 * What this worker knows of the calls that it runs and of those that it has answered, so that a
 * call that is delivered again does not run again.
 */
import { createHash } from "node:crypto";
import type { Delivery } from "../../broker/broker.ts";
import type { Clock } from "../../support/clock.ts";
import type { Reply } from "../answers.ts";

/** Answers that are remembered at most; of more, the oldest go. */
export const maxRememberedAnswers = 10_000;

/** Bytes that remembered answers may have together; of more, the oldest go. */
export const maxRememberedBytes = 32 * 1024 * 1024;

/**
 * Milliseconds for which an answer is remembered: longer than a broker takes to hand out again what
 * a lost connection left, also when the worker needs some minutes to get back to it.
 */
export const rememberedMs = 15 * 60_000;

/**
 * Deliveries of one running call that are settled together with it; of more, the first are left to
 * the broker, which has handed them out again since.
 */
export const maxDeliveriesOfCall = 16;

/**
 * What a delivery is a delivery of: its topic, its reply topic, and the bytes of its request, which
 * hold the JSON-RPC id. A broker hands all three out again as they were. The id alone would not do:
 * some callers count from 1 whenever they start, and must not be given the answers to others'
 * calls, or to those of their former life.
 */
export function deduplicationKey(
  { topic, payload }: Pick<Delivery, "topic" | "payload">,
  replyTo: string,
): string {
  // No topic that a call is answered on has a control character.
  return createHash("sha256").update(`${replyTo}\n${topic}\n`).update(payload).digest("base64");
}

/** What is known of a call when a delivery of it comes. */
export type KnownCall =
  /** Nothing: whoever asked has to handle the call, and to end the entry. */
  | { readonly state: "new"; readonly entry: RunningEntry }
  /**
   * It is being handled here; the delivery is settled when that is over. Those of it that were lost
   * are settled now.
   */
  | { readonly state: "running" }
  /** It was answered here. */
  | { readonly state: "answered"; readonly reply: Reply };

/**
 * A call that is being handled here. Owned by whoever handles it; disposing forgets a call that was
 * not ended.
 */
export interface RunningEntry extends Disposable {
  /** Whether the broker has the call again, since every connection that it came by is lost. */
  isLost(): boolean;
  /**
   * Whether more than one delivery of it came, so that another worker may have had it meanwhile.
   */
  cameAgain(): boolean;
  /**
   * Says that the call is over. From now on a delivery of it is that of a call that was answered
   * so, or of one that nothing is known of. Returns all deliveries that came until now, which the
   * caller settles.
   */
  end(remembered: Reply | undefined): readonly Delivery[];
}

interface Remembered {
  readonly reply: Reply;
  /** On the monotonic clock. */
  readonly untilMs: number;
}

/** The ledger of one worker, in memory. What runs is bounded by those who take deliveries. */
export class Ledger {
  readonly #clock: Pick<Clock, "monotonicMs">;
  /** With the deliveries of each call, in the order in which they came. */
  readonly #running = new Map<string, Set<Delivery>>();
  /** Insertion order is the order of answering. */
  readonly #answered = new Map<string, Remembered>();
  #bytes = 0;

  constructor(clock: Pick<Clock, "monotonicMs">) {
    this.#clock = clock;
  }

  /** Answers that are remembered now. */
  get remembered(): number {
    return this.#answered.size;
  }

  /** Whether a call is being handled here. */
  isRunning(key: string): boolean {
    return this.#running.has(key);
  }

  /** Takes note of a delivery, and tells what is known of its call. */
  receive(key: string, delivery: Delivery): KnownCall {
    const deliveries = this.#running.get(key);
    if (deliveries !== undefined) {
      deliveries.add(delivery);
      for (const former of deliveries) {
        const isOneTooMany = deliveries.size > maxDeliveriesOfCall;
        if (former.isLost !== true && !isOneTooMany) continue;
        deliveries.delete(former);
        letGo(former);
      }
      return { state: "running" };
    }
    this.#forgetOld();
    const remembered = this.#answered.get(key);
    if (remembered !== undefined) return { state: "answered", reply: remembered.reply };
    return { state: "new", entry: this.#open(key, delivery) };
  }

  /** What is known of the answer to a call now, if the call is remembered still. */
  update(key: string, reply: Reply): void {
    const remembered = this.#answered.get(key);
    if (remembered === undefined) return;
    this.#answered.set(key, { ...remembered, reply });
    this.#bytes += reply.payload.byteLength - remembered.reply.payload.byteLength;
  }

  #open(key: string, first: Delivery): RunningEntry {
    const deliveries = new Set([first]);
    this.#running.set(key, deliveries);
    let isOpen = true;
    const end = (remembered: Reply | undefined): readonly Delivery[] => {
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

  #remember(key: string, reply: Reply): void {
    this.#answered.set(key, { reply, untilMs: this.#clock.monotonicMs() + rememberedMs });
    this.#bytes += reply.payload.byteLength;
    this.#forgetOld();
  }

  #forgetOld(): void {
    const nowMs = this.#clock.monotonicMs();
    for (const [key, { reply, untilMs }] of this.#answered) {
      const isMuch = this.#answered.size > maxRememberedAnswers || this.#bytes > maxRememberedBytes;
      if (!isMuch && untilMs > nowMs) return;
      this.#answered.delete(key);
      this.#bytes -= reply.payload.byteLength;
    }
  }
}

/** The broker need not keep one of so many; where it cannot be told, it has that one again. */
function letGo(delivery: Delivery): void {
  delivery.settle("accepted").catch(() => undefined);
}
