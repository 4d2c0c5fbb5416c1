/**
 * Calls that the broker has handed out before: which of them must not run.
 */
import type { Delivery } from "../../broker/broker.ts";
import type { ToolEntry } from "../../manifest/manifest.ts";
import { InvocationError } from "../../protocol/errors.ts";
import { resentProperty } from "../../protocol/request.ts";

/**
 * Deliveries of a call before the broker's last that are left for one more worker to give the call
 * up.
 */
const spareDeliveries = 1;

type Count = Pick<Delivery, "redelivered" | "deliveryCount">;

/**
 * Whether somebody else had the call before, or has a copy of it, who may have started it and is
 * not heard of.
 */
export function mayHaveStarted(delivery: Pick<Delivery, keyof Count | "properties">): boolean {
  return wasDelivered(delivery) || isResent(delivery);
}

/** Whether its sender sent it before, and does not know whether the broker had it. */
export function isResent({ properties }: Pick<Delivery, "properties">): boolean {
  return properties[resentProperty] === "true";
}

/** Whether it comes again by the broker alone: its sender does not ask for the answer again. */
export function isRedelivery(delivery: Count & Pick<Delivery, "properties">): boolean {
  return wasDelivered(delivery) && !isResent(delivery);
}

/** Whether the broker handed it out before. */
export function wasDelivered({ redelivered, deliveryCount }: Count): boolean {
  return redelivered || deliveryCount > 1;
}

/**
 * `POISONED` for a call that ended as many workers as it may, or that the broker is about to hand
 * out for the last time: one delivery before, so that a worker which dies over this answer leaves
 * it to another. Undefined for every other call.
 *
 * @param runs those that workers began and did not live to answer
 */
export function poisonOf(
  delivery: Count & Pick<Delivery, "maxDeliveries">,
  runs: number,
  maxRuns: number,
): InvocationError | undefined {
  const isLast = isNearlyLost(delivery);
  if (!isLast && runs < maxRuns) return undefined;
  const what = isLast
    ? `The call was delivered ${delivery.deliveryCount} times and never answered`
    : `The call was started ${runs} times and never answered`;
  return new InvocationError("POISONED", `${what}: it is given up, and was not run this time`);
}

/** Whether the broker hands the call out once more at most. */
export function isNearlyLost(delivery: Count & Pick<Delivery, "maxDeliveries">): boolean {
  const { deliveryCount, maxDeliveries } = delivery;
  // A broker that hands everything out once does so for the last time without anything being wrong.
  if (maxDeliveries === undefined || !wasDelivered(delivery)) return false;
  return deliveryCount >= Math.max(2, maxDeliveries - spareDeliveries);
}

/**
 * Throws InvocationError `NOT_REPEATED` for a tool that must not run twice, when it may have run
 * already.
 */
export function requireRepeatable(
  { name, idempotent }: Pick<ToolEntry, "name" | "idempotent">,
  isRedelivered: boolean,
): void {
  if (idempotent || !isRedelivered) return;
  throw new InvocationError(
    "NOT_REPEATED",
    `The call was delivered again, and tool '${name}' may have run for it already. Its manifest entry forbids to run it again`,
  );
}
