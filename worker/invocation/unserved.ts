/**
 * Which calls a worker requeues because it does not serve their tool.
 */
import type { Delivery } from "../broker/broker.ts";

/**
 * Deliveries that a broker must allow: one is lost to the requeue, one is for a run, and one for
 * a second, before `POISONED`.
 */
const fewestDeliveries = 4;

/**
 * Whether a call that has not started may be requeued: once, since every delivery is counted, and
 * only where a second delivery does not keep it from running. An unlimited broker counts none.
 */
export function mayRequeue(
  {
    redelivered,
    deliveryCount,
    maxDeliveries,
  }: Pick<Delivery, "redelivered" | "deliveryCount" | "maxDeliveries">,
  leavesNoDoubt: boolean,
): boolean {
  if (!leavesNoDoubt || redelivered || deliveryCount > 1) return false;
  return maxDeliveries === undefined || maxDeliveries >= fewestDeliveries;
}
