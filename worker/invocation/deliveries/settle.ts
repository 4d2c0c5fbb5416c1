/**
 * Settles deliveries.
 */
import type { Delivery, Settlement } from "../../broker/broker.ts";
import { logEvent } from "../../telemetry/log-event.ts";
import type { Logger } from "../../telemetry/logger.ts";

/**
 * Settles the deliveries of a call; undefined leaves them to the broker. Resolves to the
 * settlement, or to undefined where the broker could not be told of one. Never throws.
 */
export async function settle(
  deliveries: readonly Delivery[],
  outcome: Settlement | undefined,
  log: Logger,
): Promise<Settlement | undefined> {
  if (outcome === undefined) return undefined;
  const told = await Promise.all(deliveries.map((delivery) => settleOne(delivery, outcome, log)));
  return told.every(Boolean) ? outcome : undefined;
}

/** Whether the broker was told. */
async function settleOne(delivery: Delivery, outcome: Settlement, log: Logger): Promise<boolean> {
  try {
    await delivery.settle(outcome);
    return true;
  } catch (error) {
    logEvent(log, "delivery.settle_failed", { err: error, topic: delivery.topic, outcome });
    return false;
  }
}
