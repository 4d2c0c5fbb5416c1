/**
 * Redelivered calls: which of them must not run.
 */
import type { Delivery } from "../../broker/broker.ts";
import type { ToolEntry } from "../../manifest/manifest.ts";
import { InvocationError } from "../../protocol/errors.ts";
import { resentProperty } from "../../protocol/messages/request.ts";

/** Deliveries before the broker's last, reserved for another worker to answer `POISONED`. */
const spareDeliveries = 1;

type Count = Pick<Delivery, "redelivered" | "deliveryCount">;

/** Whether another worker may have started the call, or a copy of it. */
export function mayHaveStarted(delivery: Pick<Delivery, keyof Count | "properties">): boolean {
  return wasDelivered(delivery) || isResent(delivery);
}

/** Whether the sender has sent the call before, without the broker's confirmation. */
export function isResent({ properties }: Pick<Delivery, "properties">): boolean {
  return properties[resentProperty] === "true";
}

/** Whether only the broker repeats the call, so that the sender needs no second answer. */
export function isRedelivery(delivery: Count & Pick<Delivery, "properties">): boolean {
  return wasDelivered(delivery) && !isResent(delivery);
}

export function wasDelivered({ redelivered, deliveryCount }: Count): boolean {
  return redelivered || deliveryCount > 1;
}

/**
 * `POISONED` at `maxRuns` runs that ended their workers, or at the last delivery but one: another
 * worker can answer if this one dies over the answer. Undefined for every other call.
 */
export function poisonOf(
  delivery: Count & Pick<Delivery, "maxDeliveries">,
  runs: number,
  maxRuns: number,
): InvocationError | undefined {
  const isLast = isNearlyLost(delivery);
  if (!isLast && runs < maxRuns) return undefined;
  const count = isLast
    ? `The call was delivered ${delivery.deliveryCount} times and never answered`
    : `The call was started ${runs} times and never answered`;
  return new InvocationError("POISONED", `${count}: it is given up, and was not run this time`);
}

/** Whether the broker delivers the call at most once more. */
export function isNearlyLost(delivery: Count & Pick<Delivery, "maxDeliveries">): boolean {
  const { deliveryCount, maxDeliveries } = delivery;
  // A broker that delivers each message once is always at its last delivery.
  if (maxDeliveries === undefined || !wasDelivered(delivery)) return false;
  return deliveryCount >= Math.max(2, maxDeliveries - spareDeliveries);
}

/** Throws InvocationError `NOT_REPEATED` for a tool that must not run twice and may have run. */
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
