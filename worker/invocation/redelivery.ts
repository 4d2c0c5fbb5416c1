/**
 * Calls that the broker has handed out before: which of them must not run.
 */
import type { Delivery } from "../broker/broker.ts";
import type { ToolEntry } from "../manifest/manifest.ts";
import { InvocationError } from "../protocol/errors.ts";
import { resentProperty } from "../protocol/request.ts";

/** Deliveries of a call before the broker's last that are left for one more worker to give the call up. */
const spareDeliveries = 1;

type Count = Pick<Delivery, "redelivered" | "deliveryCount">;

/** Whether somebody else had the call before, or has a copy of it, who may have begun it and is not heard of. */
export function mayHaveBegun(delivery: Pick<Delivery, keyof Count | "properties">): boolean {
  return wasDelivered(delivery) || delivery.properties[resentProperty] === "true";
}

function wasDelivered({ redelivered, deliveryCount }: Count): boolean {
  return redelivered || deliveryCount > 1;
}

/**
 * `POISONED` for a call that the broker is about to hand out for the last time: whoever had it before did not live to answer
 * it. Undefined for every other call, and where the broker has no such limit. It is so one delivery before the last, so that
 * a worker which dies over this answer leaves it to another; of two deliveries, at the second.
 */
export function poisonOf(
  delivery: Count & Pick<Delivery, "maxDeliveries">,
): InvocationError | undefined {
  const { deliveryCount, maxDeliveries } = delivery;
  // A broker that hands everything out once does so for the last time without anything being wrong.
  if (maxDeliveries === undefined || !wasDelivered(delivery)) return undefined;
  if (deliveryCount < Math.max(2, maxDeliveries - spareDeliveries)) return undefined;
  return new InvocationError(
    "POISONED",
    `The call was delivered ${deliveryCount} times and never answered: it is given up, and was not run this time`,
  );
}

/** Throws InvocationError `NOT_REPEATED` for a tool that must not run twice, when it may have run already. */
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
