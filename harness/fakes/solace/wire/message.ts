/**
 * A message on its way through the broker, which looks at its topic and never into its body.
 */
import { type Field, numberField } from "./fields.ts";
import { type Frame, encodeFrame, protocol } from "./frame.ts";
import { deliveryMode, deliveryModeParam, param, redeliveryCountParam } from "./params.ts";

/** A message, without what belongs to the hop on which it came. */
export interface Message {
  /** What it was published to. */
  readonly topic: string;
  readonly mode: number;
  readonly isDeadMessageEligible: boolean;
  readonly priority: number;
  /** Milliseconds that it may wait in a queue; 0 for as long as it takes. */
  readonly timeToLiveMs: number;
  /** Parameters that reach the receiver as they are. */
  readonly passed: readonly Field[];
  readonly body: Buffer;
  /** What it takes of a queue's quota. */
  readonly sizeBytes: number;
}

/** Where and how a message is handed out. */
export interface Handout {
  readonly flowId: number;
  readonly id: number;
  /** The id handed out before it on the same flow; 0 for none. */
  readonly previousId: number;
  /** How often it was handed out before, on whichever flow. */
  readonly redeliveries: number;
}

/** Topics of this form name a queue. */
const queueTopic = "#P2P/QUE/";

/** Of the hop between publisher and broker, or set anew on the hop to the receiver. */
const hopParams: ReadonlySet<number> = new Set([
  param.publisherId,
  param.username,
  param.password,
  param.response,
  param.deliveryMode,
  param.messageId,
  param.previousMessageId,
  param.redelivered,
  param.flowId,
  param.extended,
]);

/** The message of a frame. */
export function messageOf(frame: Frame): Message {
  const { fields } = frame;
  return {
    topic: fields.text(param.topic) ?? "",
    // A direct message that a queue attracts is kept as one that need not survive.
    mode: frame.isAssured
      ? (fields.number(param.deliveryMode, 1) ?? deliveryMode.persistent)
      : deliveryMode.nonPersistent,
    isDeadMessageEligible: frame.isDeadMessageEligible,
    priority: frame.priority,
    timeToLiveMs: fields.number(param.timeToLiveMs, 8) ?? 0,
    passed: [...fields].filter(({ type }) => !hopParams.has(type)),
    body: frame.payload,
    sizeBytes: frame.bytes.length,
  };
}

/** The queue that a topic names; undefined for any other topic. */
export function queueNamed(topic: string): string | undefined {
  return topic.startsWith(queueTopic) ? topic.slice(queueTopic.length) : undefined;
}

/** The frame that hands a message out on a flow. */
export function encodeHandout(message: Message, handout: Handout): Buffer {
  const { flowId, id, previousId, redeliveries } = handout;
  return encodeFrame({
    protocol: protocol.message,
    isAssured: true,
    isDeadMessageEligible: message.isDeadMessageEligible,
    priority: message.priority,
    fields: [
      deliveryModeParam(message.mode),
      numberField(param.messageId, id, 8),
      numberField(param.previousMessageId, previousId, 8),
      numberField(param.flowId, flowId, 4),
      ...message.passed,
      ...(redeliveries > 0
        ? [{ type: param.redelivered, value: Buffer.alloc(0) }, redeliveryCountParam(redeliveries)]
        : []),
    ],
    payload: message.body,
  });
}

/** The frame for those who subscribe to topics themselves: to them every message is direct. */
export function encodeDirect(message: Message): Buffer {
  return encodeFrame({
    protocol: protocol.message,
    isDeadMessageEligible: message.isDeadMessageEligible,
    priority: message.priority,
    fields: [deliveryModeParam(deliveryMode.direct), ...message.passed],
    payload: message.body,
  });
}
