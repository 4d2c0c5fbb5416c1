/**
 * One delivery to its settlement: looked up in the ledger, run, answered or requeued, settled.
 */
import type { BrokerSession, Delivery, Settlement } from "../broker/broker.ts";
import { InvocationError } from "../protocol/errors.ts";
import { type ReplyAddress, readReplyAddress } from "../protocol/request.ts";
import { logEvent } from "../telemetry/log-event.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { Answers, Recipient, EncodedResponse } from "./answers.ts";
import {
  type CallParts,
  type CallSignals,
  type CallResult,
  refuseCall,
  requestId,
  runCall,
} from "./call.ts";
import { type CallClaim, type CallHistory, type Claims, NotStartedError } from "./claims/claims.ts";
import { type Ledger, deduplicationKey } from "./claims/ledger.ts";
import { isNearlyLost, isRedelivery, poisonOf } from "./claims/redelivery.ts";

/** What the handler works with. */
export interface HandlerParts extends CallParts {
  readonly session: Pick<BrokerSession, "publish" | "redelivers">;
  readonly ledger: Ledger;
  readonly answers: Answers;
  readonly claims: Claims;
  /** Runs of a call that end their workers, at most. */
  readonly maxRuns: number;
}

/** A call that is not being handled here yet. */
interface NewCall {
  readonly parts: HandlerParts;
  readonly delivery: Delivery;
  readonly address: ReplyAddress;
  readonly signals: CallSignals;
  readonly claim: CallClaim;
}

/** How a call's deliveries are settled, and the response that the ledger remembers. */
interface HandlerResult {
  readonly settlement: Settlement | undefined;
  readonly remembered?: EncodedResponse | undefined;
}

/**
 * Handles one delivery, and tells how it was settled; undefined when it was not, because its call
 * runs here already and settles it at its end, or because the session has ended. Never throws: what
 * cannot be answered is logged and settled.
 *
 * Every call with a usable reply topic is answered, and settled then, but for those that the worker
 * cancels: a broker that redelivers requeues them, unanswered, unless they must not run again. A
 * call that was answered here and comes again does not run. It is answered the same, unless the
 * broker redelivered it and has confirmed the answer.
 */
export async function handleDelivery(
  parts: HandlerParts,
  delivery: Delivery,
  signals: CallSignals,
): Promise<Settlement | undefined> {
  const { topic, deliveryCount } = delivery;
  const address = readReplyAddress(delivery.properties);
  if (address === undefined) {
    logEvent(parts.log, "message.reply_to_missing", { topic });
    return settle([delivery], "rejected", parts.log);
  }
  const key = deduplicationKey(delivery, address.replyTo);
  const known = parts.ledger.receive(key, delivery);
  switch (known.state) {
    case "running":
      logEvent(parts.log, "call.redelivered_while_running", { topic, deliveryCount });
      return undefined;
    case "answered": {
      logEvent(parts.log, "call.redelivered_after_answer", { topic, deliveryCount });
      const isKnown = known.response.isDelivered === true && isRedelivery(delivery);
      if (isKnown) return settle([delivery], "accepted", parts.log);
      const to = recipientOf(delivery, address);
      const again = await parts.answers.publish(to, known.response, signals.publish);
      parts.ledger.update(key, again.response);
      return settle([delivery], again.settlement, parts.log);
    }
    case "new": {
      using entry = known.entry;
      using claim = parts.claims.open(key, delivery, entry);
      const call = { parts, delivery, address, signals, claim };
      const { settlement, remembered } = await handleNew(call);
      // What comes from now on finds the call answered, or unknown, and is settled by whoever
      // handles it.
      return await settle(entry.end(remembered), settlement, parts.log);
    }
  }
}

/**
 * Whether a delivery is one of a call that is being handled here, for which nothing is to be done.
 */
export function runsHere(ledger: Pick<Ledger, "isRunning">, delivery: Delivery): boolean {
  const address = readReplyAddress(delivery.properties);
  return address !== undefined && ledger.isRunning(deduplicationKey(delivery, address.replyTo));
}

function recipientOf({ correlationId }: Delivery, { replyTo }: ReplyAddress): Recipient {
  return { topic: replyTo, ...(correlationId !== undefined && { correlationId }) };
}

async function handleNew(call: NewCall): Promise<HandlerResult> {
  const { parts, delivery, claim } = call;
  for (;;) {
    const history = await historyOf(call);
    if (history === undefined) return { settlement: "failed" };
    if (history.kind === "answered" && isRedelivery(delivery)) {
      logAnsweredElsewhere(parts, delivery);
      return { settlement: "accepted" };
    }
    const result = await (history.kind === "open" ? run(call, history) : repeat(call, history));
    if (result !== undefined) return await answer(call, result);
    if (claim.isTaken) continue;
    await claim.release();
    return { settlement: "failed" };
  }
}

/** Undefined when the call is requeued: the worker shuts down, or the broker has the call again. */
async function historyOf({ delivery, claim, signals }: NewCall): Promise<CallHistory | undefined> {
  const signal = AbortSignal.any([signals.wait, signals.run]);
  try {
    // A worker that waits may be ended meanwhile, and another delivery may be the last.
    return await claim.history(signal, isNearlyLost(delivery));
  } catch (error) {
    if (signal.aborted || error instanceof NotStartedError) return undefined;
    throw error;
  }
}

/** Undefined when the call is requeued, or taken. */
async function run(
  { parts, delivery, address, signals, claim }: NewCall,
  { runs, mayHaveStarted }: Extract<CallHistory, { kind: "open" }>,
): Promise<CallResult | undefined> {
  const poison = poisonOf(delivery, runs, parts.maxRuns);
  if (poison !== undefined) {
    return { ...(await refuseCall(parts, delivery, poison, signals)), isPoison: true };
  }
  return await runCall(parts, delivery, address, signals, { claim, mayHaveStarted });
}

/**
 * The answer that another worker kept for the same request, or `NOT_REPEATED` where it was too
 * large.
 */
async function repeat(
  { parts, delivery, signals }: NewCall,
  { kind, answer }: Exclude<CallHistory, { kind: "open" }>,
): Promise<CallResult> {
  if (answer === undefined) {
    const message = "The same request was answered before. The answer was too large to be kept";
    const refusal = new InvocationError("NOT_REPEATED", message);
    const { response } = await refuseCall(parts, delivery, refusal, signals);
    return { response, isFinal: true, isRepeated: true };
  }
  const { topic, deliveryCount } = delivery;
  logEvent(parts.log, "call.kept_answer_sent", { topic, deliveryCount });
  const id = await requestId(parts, delivery, signals);
  return { isFinal: true, isRepeated: kind === "answered", response: { id, payload: answer } };
}

async function answer(
  { parts, delivery, address, signals, claim }: NewCall,
  { response, isFinal, isPoison = false, isRepeated = false }: CallResult,
): Promise<HandlerResult> {
  // A poison is not kept: an operator who puts it back into its queue wants it tried again.
  const isKept = isFinal && !isPoison && !isRepeated;
  // After a stall: another worker took this one for dead, and its answer stands.
  const isAnswered = !isRepeated && (await claim.isAnswered(isKept ? response.payload : undefined));
  if (isAnswered) {
    logAnsweredElsewhere(parts, delivery);
    return { settlement: "accepted" };
  }
  const to = recipientOf(delivery, address);
  const { overtaken } = claim;
  const signal = overtaken ? AbortSignal.any([signals.publish, overtaken]) : signals.publish;
  const published = await parts.answers.publish(to, response, signal);
  const { settlement } = published;
  if (settlement === undefined && overtaken?.aborted) logAnsweredElsewhere(parts, delivery);
  if (isKept && settlement === "accepted") await claim.answered(published.response.payload);
  if (settlement === "failed") await claim.release();
  if (isPoison) return { settlement: settlement === "accepted" ? "rejected" : settlement };
  return { settlement, remembered: isFinal ? published.response : undefined };
}

function logAnsweredElsewhere({ log }: HandlerParts, delivery: Delivery): void {
  const { topic, deliveryCount } = delivery;
  logEvent(log, "call.answered_elsewhere", { topic, deliveryCount });
}

/**
 * Tells the broker, and the caller, how the deliveries of a call ended; undefined leaves them to
 * the broker. Never throws.
 */
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
    logEvent(log, "delivery.settle_failed", { err: error, topic: delivery.topic, outcome });
  }
}
