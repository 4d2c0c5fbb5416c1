/**
 * One delivery to its settlement, in this order: address, deduplicate, decode, admit, invoke,
 * encode, publish, settle.
 *
 * The worker answers and settles every call with a usable reply topic, except cancelled calls. A
 * broker that redelivers requeues those, unless they must not run again. A call that this worker
 * has answered does not run again: it gets the same answer, unless the broker redelivered the call
 * and has confirmed the answer.
 */
import type { BrokerSession, Delivery, Settlement } from "../broker/broker.ts";
import {
  type ReplyAddress,
  decodeRequest,
  readReplyAddress,
} from "../protocol/messages/request.ts";
import { traceparentProperty, tracestateProperty } from "../protocol/trace-context.ts";
import type { CallFollower } from "../telemetry/call-follower.ts";
import { logEvent } from "../telemetry/log-event.ts";
import type { Logger } from "../telemetry/logger.ts";
import { withSendingTime } from "./age.ts";
import type { Answers, EncodedResponse, Recipient } from "./answers.ts";
import { type AuditParts, CallAudit, type CallEnd } from "./audit/call-audit.ts";
import { type CallParts, type CallSignals, type RunSignals, runCall } from "./call.ts";
import {
  type CallResult,
  cancelledResult,
  encodeResult,
  refuseCall,
  repeatAnswer,
} from "./call-result.ts";
import { cancellableCall } from "./cancellation/callers.ts";
import { type Cancels, cancelledBy } from "./cancellation/cancels.ts";
import { type CallClaim, type CallHistory, type Claims, NotStartedError } from "./claims/claims.ts";
import { type Ledger, deduplicationKey } from "./claims/ledger.ts";
import { isNearlyLost, isRedelivery, poisonOf } from "./claims/redelivery.ts";
import type { ReceivedDelivery } from "./deliveries/consumer.ts";
import { type FollowParts, follow, withTrace } from "./follow.ts";
import { type ReadParts, type ReadRequest, type TopicTools, readRequest } from "./read-request.ts";
import { settle } from "./deliveries/settle.ts";
import { type ServingParts, isRequeuedUnserved } from "./unserved.ts";

/** Dependencies of the handler; `wiring/calls.ts` wires them. */
export interface HandlerParts extends AuditParts, CallParts, FollowParts, ReadParts, ServingParts {
  readonly session: Pick<BrokerSession, "publish" | "redelivers">;
  readonly topicTools: TopicTools;
  readonly ledger: Ledger;
  readonly answers: Answers;
  readonly claims: Claims;
  readonly cancels: Pick<Cancels, "open">;
  /** Most runs of a call that end their workers, before the call is poison. */
  readonly maxRuns: number;
  readonly log: Logger;
}

/** A delivery whose reply topic is usable. */
interface AddressedDelivery {
  readonly parts: HandlerParts;
  readonly delivery: Delivery;
  readonly address: ReplyAddress;
  readonly key: string;
  readonly signals: CallSignals;
  readonly audit: CallAudit | undefined;
}

/** The same, when its steps are followed. */
interface AddressedCall extends AddressedDelivery {
  readonly follower: CallFollower;
}

/** A call that this worker neither runs nor remembers. */
interface NewCall extends AddressedCall {
  readonly claim: CallClaim;
  readonly signals: RunSignals;
}

/** How a delivery ended. */
interface DeliveryEnd {
  readonly settlement: Settlement | undefined;
  readonly end: CallEnd;
}

/** How a call's deliveries are settled, and the response that the ledger remembers. */
interface HandlerResult extends DeliveryEnd {
  readonly remembered?: EncodedResponse | undefined;
}

const requeued: HandlerResult = { settlement: "failed", end: "requeued" };

const answeredElsewhere: HandlerResult = { settlement: "accepted", end: "duplicate" };

/** Reads the reply topic and the deduplication key of a delivery, once. */
export function receiveDelivery(
  parts: HandlerParts,
  delivery: Delivery,
  signals: CallSignals,
): ReceivedDelivery {
  const address = readReplyAddress(delivery.properties);
  if (address === undefined) {
    return { isRunning: () => false, handle: () => rejectUnaddressed(parts, delivery) };
  }
  const key = deduplicationKey(delivery, address.replyTo);
  const audit = CallAudit.of(parts, delivery, key);
  const call = { parts, delivery, address, key, signals, audit };
  return { isRunning: () => parts.ledger.isRunning(key), handle: () => handle(call) };
}

async function rejectUnaddressed(
  parts: HandlerParts,
  delivery: Delivery,
): Promise<Settlement | undefined> {
  logEvent(parts.log, "message.reply_to_missing", { topic: delivery.topic });
  CallAudit.of(parts, delivery, undefined)?.end("rejected");
  const follower = follow(parts, delivery, undefined);
  const settlement = await settle([delivery], "rejected", parts.log);
  follower.end({ outcome: "rejected", settlement: settlement ?? "none" });
  return settlement;
}

/** Ends the follower on every path. */
async function handle(received: AddressedDelivery): Promise<Settlement | undefined> {
  const follower = follow(received.parts, received.delivery, received.address.replyTo);
  const parts = withTrace(received.parts, received.address.traceparent, follower);
  let ended: DeliveryEnd = { end: "unanswered", settlement: undefined };
  try {
    ended = await deduplicate({ ...received, parts, follower });
  } finally {
    follower.end({ outcome: ended.end, settlement: ended.settlement ?? "none" });
  }
  return ended.settlement;
}

async function deduplicate(call: AddressedCall): Promise<DeliveryEnd> {
  const { parts, delivery, address, key, audit, follower } = call;
  const { topic, deliveryCount } = delivery;
  const known = parts.ledger.receive(key, delivery);
  if (known.state !== "new") audit?.end("duplicate");
  switch (known.state) {
    case "running":
      logEvent(parts.log, "call.redelivered_while_running", { topic, deliveryCount });
      // It is settled with the call that runs.
      return { end: "duplicate", settlement: undefined };
    case "answered":
      logEvent(parts.log, "call.redelivered_after_answer", { topic, deliveryCount });
      follower.enter("publish");
      return { end: "duplicate", settlement: await answerAgain(call, known.response) };
    case "new": {
      using entry = known.entry;
      using claim = parts.claims.open(key, delivery, entry);
      using cancellable = parts.cancels.open(cancellableCall(delivery, address.replyTo));
      const signals = { ...call.signals, cancel: cancellable.signal };
      follower.cancellable?.(() => cancellable.cancel());
      const { settlement, remembered, end } = await handleNew({ ...call, claim, signals });
      audit?.end(end);
      // Deliveries from now on find the call answered or unknown, and settle on their own.
      return { end, settlement: await settle(entry.end(remembered), settlement, parts.log) };
    }
  }
}

async function answerAgain(
  call: AddressedCall,
  response: EncodedResponse,
): Promise<Settlement | undefined> {
  const { parts, delivery, key, signals } = call;
  const { answers, ledger, log } = parts;
  const isConfirmed = response.isDelivered === true;
  if (isConfirmed && isRedelivery(delivery)) return await settle([delivery], "accepted", log);
  const again = await answers.publish(recipientOf(call), response, signals.publish, log);
  ledger.update(key, again.response);
  return await settle([delivery], again.settlement, log);
}

async function handleNew(call: NewCall): Promise<HandlerResult> {
  const { parts, delivery, signals, claim, audit } = call;
  for (;;) {
    const history = await historyOf(call);
    if (history === undefined) return requeued;
    if (history.kind === "answered" && isRedelivery(delivery)) {
      logAnsweredElsewhere(parts, delivery);
      return answeredElsewhere;
    }
    const request = await readRequest(parts, delivery.payload, signals.publish);
    audit?.identify(request.document);
    const result =
      history.kind === "open"
        ? await execute(call, request, history)
        : repeatAnswer(parts, delivery, request, history);
    if (result !== undefined) return await publish(call, result);
    if (claim.isSuperseded) continue;
    await claim.release();
    return requeued;
  }
}

/** Undefined for a call to requeue: the worker shuts down, or the broker redelivers the call. */
async function historyOf({ delivery, claim, signals }: NewCall): Promise<CallHistory | undefined> {
  const stop = signals.wait;
  // The worker may end while it waits, and the next delivery may be the last.
  const history = await unlessStopped(claim.history(stop, isNearlyLost(delivery)), stop);
  if (history !== undefined || !signals.cancel.aborted) return history;
  // A worker that did not hear the cancel would run the call.
  return await unlessStopped(claim.history(signals.publish, true), signals.publish);
}

async function unlessStopped(
  history: Promise<CallHistory>,
  stop: AbortSignal,
): Promise<CallHistory | undefined> {
  try {
    return await history;
  } catch (error) {
    if (stop.aborted || error instanceof NotStartedError) return undefined;
    throw error;
  }
}

/** Admits, invokes and encodes. Undefined when the call is requeued or superseded. Never throws. */
async function execute(
  { parts, delivery, address, signals, claim, audit, follower }: NewCall,
  request: ReadRequest,
  { runs, mayHaveStarted }: Extract<CallHistory, { kind: "open" }>,
): Promise<CallResult | undefined> {
  if (signals.cancel.aborted)
    return cancelledResult(parts, delivery, request, cancelledBy(signals.cancel), mayHaveStarted);
  const poison = poisonOf(delivery, runs, parts.maxRuns);
  if (poison !== undefined) {
    return { ...refuseCall(parts, delivery, request, poison), isPoison: true };
  }
  const { problem } = request;
  if (problem !== undefined) return refuseCall(parts, delivery, request, problem);
  const claimed = { claim, mayHaveStarted };
  try {
    if (isRequeuedUnserved(parts, delivery, claimed)) return undefined;
    const dated = withSendingTime(address, delivery, parts.session);
    const decoded = decodeRequest(request.document, dated, parts.clock.nowMs());
    const invocation = parts.topicTools.callOf(delivery.topic, decoded);
    await audit?.start(invocation, signals.publish);
    const { answer, started } = await runCall(parts, invocation, claimed, signals, {
      audit,
      follower,
      onWaiting: () => delivery.exempt?.(),
    });
    if (audit !== undefined) audit.started = started;
    return answer && encodeResult(request.id, answer, started);
  } catch (error) {
    return refuseCall(parts, delivery, request, error);
  }
}

async function publish(
  call: NewCall,
  { response, end, isFinal, isPoison = false, isRepeated = false }: CallResult,
): Promise<HandlerResult> {
  const { parts, delivery, signals, claim, follower } = call;
  follower.enter("publish");
  // An operator requeues a poison call to have it tried again.
  const isKept = isFinal && !isPoison && !isRepeated;
  // After a stall another worker may have answered the call; then that answer stands.
  const isAnswered = !isRepeated && (await claim.isAnswered(isKept ? response.payload : undefined));
  if (isAnswered) {
    logAnsweredElsewhere(parts, delivery);
    return answeredElsewhere;
  }
  const to = recipientOf(call);
  const { overtaken } = claim;
  const signal = overtaken ? AbortSignal.any([signals.publish, overtaken]) : signals.publish;
  const published = await parts.answers.publish(to, response, signal, parts.log);
  const { settlement, replacedBy } = published;
  const isOvertaken = settlement === undefined && overtaken?.aborted === true;
  if (isOvertaken) logAnsweredElsewhere(parts, delivery);
  const unpublished = isOvertaken ? "duplicate" : "unanswered";
  const ended = { end: settlement === "accepted" ? (replacedBy ?? end) : unpublished } as const;
  if (isKept && settlement === "accepted") await claim.answered(published.response.payload);
  if (settlement === "failed") await claim.release();
  if (isPoison)
    return { ...ended, settlement: settlement === "accepted" ? "rejected" : settlement };
  return { ...ended, settlement, remembered: isFinal ? published.response : undefined };
}

function recipientOf({ delivery, address, follower }: AddressedCall): Recipient {
  const { correlationId } = delivery;
  const traceparent = follower.trace?.traceparentOf("publish") ?? address.traceparent;
  const { tracestate } = address;
  const properties = {
    ...(traceparent !== undefined && { [traceparentProperty]: traceparent }),
    ...(tracestate !== undefined && { [tracestateProperty]: tracestate }),
  };
  return {
    topic: address.replyTo,
    ...(correlationId !== undefined && { correlationId }),
    properties,
  };
}

function logAnsweredElsewhere({ log }: HandlerParts, delivery: Delivery): void {
  const { topic, deliveryCount } = delivery;
  logEvent(log, "call.answered_elsewhere", { topic, deliveryCount });
}
