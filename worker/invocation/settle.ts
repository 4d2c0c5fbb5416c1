/**
 * Settles deliveries.
 */
import type { Delivery, Settlement } from "../broker/broker.ts";
import { logEvent } from "../telemetry/log-event.ts";
import type { Logger } from "../telemetry/logger.ts";

/** Settles the deliveries of a call; undefined leaves them to the broker. Never throws. */
export async function settle(
  deliveries: readonly Delivery[],
  outcome: Settlement | undefined,
  log: Logger,
): Promise<Settlement | undefined> {
  if (outcome === undefined) return undefined;
  await Promise.all(deliveries.map((delivery) => settleOne(delivery, outcome, log)));
  return outcome;
}

async function settleOne(delivery: Delivery, outcome: Settlement, log: Logger): Promise<void> {
  try {
    await delivery.settle(outcome);
  } catch (error) {
    logEvent(log, "delivery.settle_failed", { err: error, topic: delivery.topic, outcome });
  }
}
