/**
 * One delivery to its settlement: looked up in the ledger, run, answered or given back, settled.
 */
import type { BrokerSession, Delivery, Settlement } from "../broker/broker.ts";
import { type ReplyAddress, readReplyAddress } from "../protocol/request.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { Answers, Recipient, Reply } from "./answers.ts";
import { type CallParts, type CallSignals, runCall } from "./call.ts";
import { type Ledger, callKey } from "./ledger.ts";
import { poisonOf } from "./redelivery.ts";

/** What the handler works with. */
export interface HandlerParts extends CallParts {
  readonly session: Pick<BrokerSession, "publish" | "redelivers">;
  readonly ledger: Ledger;
  readonly answers: Answers;
}

/** How a call ends. */
interface Ending {
  readonly settlement: Settlement | undefined;
  /** What is sent when the call is delivered again; undefined when it is then to be looked at. */
  readonly remembered?: Reply | undefined;
}

/**
 * Handles one delivery, and tells how it was settled; undefined when it was not, because its call runs here already and
 * settles it at its end, or because the session has ended. Never throws: what cannot be answered is logged and settled.
 *
 * Every call with a usable reply topic is answered, and settled then, but for those that the worker gives up: they go back
 * to a broker that redelivers, unanswered, unless they must not run again. A call that was answered here and is delivered
 * again is answered the same, and does not run.
 */
export async function handleDelivery(
  parts: HandlerParts,
  delivery: Delivery,
  signals: CallSignals,
): Promise<Settlement | undefined> {
  const { topic, deliveryCount } = delivery;
  const address = readReplyAddress(delivery.properties);
  if (address === undefined) {
    parts.log.warn({ topic }, "message without a usable replyTo was dropped");
    return settle([delivery], "rejected", parts.log);
  }
  const known = parts.ledger.receive(callKey(delivery, address.replyTo), delivery);
  switch (known.state) {
    case "running":
      parts.log.info({ topic, deliveryCount }, "call was delivered again while it runs");
      return undefined;
    case "answered": {
      parts.log.info({ topic, deliveryCount }, "call was delivered again after its answer");
      const to = recipientOf(delivery, address);
      const { settlement } = await parts.answers.publish(to, known.reply, signals.publish);
      return settle([delivery], settlement, parts.log);
    }
    case "new": {
      using entry = known.entry;
      const { settlement, remembered } = await handleNew(parts, delivery, address, signals);
      // What comes from now on finds the call answered, or unknown, and is settled by whoever handles it.
      return await settle(entry.end(remembered), settlement, parts.log);
    }
  }
}

/** Whether a delivery is one of a call that is being handled here, for which nothing is to be done. */
export function runsHere(ledger: Pick<Ledger, "isRunning">, delivery: Delivery): boolean {
  const address = readReplyAddress(delivery.properties);
  return address !== undefined && ledger.isRunning(callKey(delivery, address.replyTo));
}

function recipientOf({ correlationId }: Delivery, { replyTo }: ReplyAddress): Recipient {
  return { topic: replyTo, ...(correlationId !== undefined && { correlationId }) };
}

async function handleNew(
  parts: HandlerParts,
  delivery: Delivery,
  address: ReplyAddress,
  signals: CallSignals,
): Promise<Ending> {
  const poison = poisonOf(delivery);
  const decision = await runCall(parts, delivery, address, signals, poison);
  if (decision === undefined) return { settlement: "failed" };
  const { isFinal } = decision;
  const to = recipientOf(delivery, address);
  const published = await parts.answers.publish(to, decision.reply, signals.publish);
  const { settlement, reply } = published;
  // Not remembered: an operator who puts it back into its queue wants it tried again.
  if (poison !== undefined)
    return { settlement: settlement === "accepted" ? "rejected" : settlement };
  return { settlement, remembered: isFinal ? reply : undefined };
}

/** Tells the broker, and the caller, how the deliveries of a call ended; undefined leaves them to the broker. Never throws. */
async function settle(
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
    log.warn({ err: error, topic: delivery.topic, outcome }, "delivery could not be settled");
  }
}
