/**
 * The age of a call at its receipt.
 */
import type { BrokerSession, Delivery } from "../broker/broker.ts";
import type { CallAge, Invocation } from "../protocol/invocation.ts";
import type { ReplyAddress } from "../protocol/messages/request.ts";
import { type CallTimes, TimeLimitReached, remainingLimitMs } from "./limits.ts";

/** The caller stopped waiting before the worker received the call. */
export class CallTooOld extends TimeLimitReached {
  readonly age: CallAge;

  constructor(age: CallAge) {
    super();
    this.age = age;
  }
}

/**
 * Sets the sending time by the broker's clock, else keeps the sender's. A broker without queues
 * delivers immediately: there a difference would be one of clocks, so the time is dropped.
 */
export function withSendingTime(
  address: ReplyAddress,
  { brokerTimeMs }: Pick<Delivery, "brokerTimeMs">,
  { redelivers }: Pick<BrokerSession, "redelivers">,
): ReplyAddress {
  if (!redelivers) return { ...address, sentAtMs: undefined };
  if (brokerTimeMs === undefined) return address;
  return { ...address, sentAtMs: brokerTimeMs, sentAtClock: "broker" };
}

/** Throws CallTooOld when no answer can reach the caller in time. */
export function requireFresh(
  times: CallTimes,
  { sentAtMs, sentAtClock: clock = "sender" }: Pick<Invocation, "sentAtMs" | "sentAtClock">,
  nowMs: number,
): void {
  if (remainingLimitMs(times, nowMs) > 0) return;
  throw new CallTooOld({
    ageMs: Math.round(nowMs - sentAtMs),
    sentAtMs,
    receivedAtMs: nowMs,
    clock,
  });
}
