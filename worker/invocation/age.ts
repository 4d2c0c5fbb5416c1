/**
 * How old a call is when it comes, and by whose clock.
 */
import type { BrokerSession, Delivery } from "../broker/broker.ts";
import type { CallAge, Invocation } from "../protocol/invocation.ts";
import type { ReplyAddress } from "../protocol/request.ts";
import { type CallTimes, TimeLimitReached, remainingLimitMs } from "./limits.ts";

/** A call whose caller had stopped waiting before it came. */
export class CallTooOld extends TimeLimitReached {
  readonly age: CallAge;

  constructor(age: CallAge) {
    super();
    this.age = age;
  }
}

/**
 * The address with the time that the call's age counts from: the broker's where it tells one, else
 * the sender's. A broker that keeps no calls hands them out at once, so that a difference there is
 * one of clocks and not an age.
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

/** Throws CallTooOld when no tool could be answered in time any more. */
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
