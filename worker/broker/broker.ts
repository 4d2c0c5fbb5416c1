/**
 * The broker contract: what the worker needs of a message broker, and nothing more.
 *
 * Here and in the adapters, what takes a signal throws BrokerError, or the signal's reason when it
 * aborts. A function that opens something leaves nothing open then.
 */

/**
 * How a delivery ends, in Solace's three outcomes.
 *
 * | outcome    | meaning                               | RabbitMQ        | DevBroker |
 * |------------|---------------------------------------|-----------------|-----------|
 * | `accepted` | answered; never deliver it again      | ack             | nothing   |
 * | `failed`   | not handled; another worker may do so | reject, requeue | nothing   |
 * | `rejected` | no worker can handle it; dead-letter  | reject          | nothing   |
 */
export type Settlement = "accepted" | "failed" | "rejected";

/** One message for this worker. */
export interface Delivery {
  readonly topic: string;
  /** The queue in its group, where the broker has queues. */
  readonly queue?: string;
  /** UTF-8 JSON, not decoded. */
  readonly payload: Uint8Array;
  readonly redelivered: boolean;
  /** This one included; 2 for any but the first where the broker does not count. */
  readonly deliveryCount: number;
  /** Deliveries before the broker dead-letters it; undefined for no limit or an unknown one. */
  readonly maxDeliveries: number | undefined;
  /** User properties; values that are not strings arrive as their JSON text. */
  readonly properties: Readonly<Record<string, string>>;
  /** When the broker took the message, in epoch milliseconds of its clock, if it reports that. */
  readonly brokerTimeMs?: number;
  /** Tells answers apart for the sender, where the broker's messages have a place for it. */
  readonly correlationId?: string;
  /** The sender's user name, where the broker has verified it. */
  readonly sender?: string;
  /** Whether its connection is gone: the broker redelivers the message, and ignores `settle`. */
  readonly isLost?: boolean;
  /**
   * Takes it out of the limit of unsettled deliveries until it is settled: its call waits for
   * others, which may come through the same queue. Idempotent; absent where there is no limit.
   */
  exempt?(): void;
  /** Idempotent: the first outcome wins. */
  settle(outcome: Settlement): Promise<void>;
}

/** A message to publish. The adapter adds the property `timestamp` (epoch milliseconds). */
export interface OutboundMessage {
  readonly topic: string;
  /** UTF-8 JSON. */
  readonly payload: Uint8Array;
  readonly properties?: Readonly<Record<string, string | number | boolean>>;
  /** That of the message which it answers. */
  readonly correlationId?: string;
  /** Reports progress only: an operator may have it sent without confirmation. */
  readonly isStatus?: boolean;
  /** Published again for a minute and a half while the broker refuses it, by `reconnecting`. */
  readonly isRetried?: boolean;
  /** Brokers that can drop an expired message without a dead letter do so; others keep it. */
  readonly timeToLiveSeconds?: number;
}

/** Brokers that do not report unroutable messages confirm them. */
export type PublishOutcome = "confirmed" | "unroutable";

export type HeardMessage = Pick<Delivery, "topic" | "payload" | "properties" | "sender">;

/**
 * Messages of one pattern from the subscription on, in order. Single consumer. Ends with the
 * session and at its disposal.
 */
export interface BrokerSubscription extends AsyncIterable<HeardMessage>, AsyncDisposable {
  /** Lost messages: of too many that wait, the oldest go. */
  readonly dropped: number;
}

export interface SessionEnd {
  readonly reason: "asked" | "lost";
  readonly cause?: unknown;
}

/** A connection. Its owner disposes it; disposal closes it and ends `deliveries`. */
export interface BrokerSession extends AsyncDisposable {
  /** Whether deliveries come again that are settled `failed`, or not settled when it ends. */
  readonly redelivers: boolean;
  /** Whether an administrator can have settled calls delivered again, to any worker. */
  readonly mayReplay?: boolean;
  /** What keeps all calls or all answers away although there is a connection, for operators. */
  readonly notReadyReasons?: readonly string[];
  /** Messages of the served tools. Single consumer. Ends with the session, and after a pause. */
  readonly deliveries: AsyncIterable<Delivery>;
  /** Fulfils when the session ended; never rejects. */
  readonly closed: Promise<SessionEnd>;
  /**
   * Receives the calls of a tool, unless paused: through the queue that the tool has now and no
   * other of the group, where the broker has queues. Idempotent.
   */
  serve(toolName: string, signal: AbortSignal): Promise<void>;
  /**
   * Receives no more calls of a tool. A group's queue still brings them, since other workers of the
   * group may serve it, unless the manifest leaves the tool to others. Idempotent.
   */
  leave(toolName: string, signal: AbortSignal): Promise<void>;
  /** Resolves when the broker confirmed the message. */
  publish(message: OutboundMessage, signal: AbortSignal): Promise<PublishOutcome>;
  /**
   * Subscribes to topics that match the pattern: `*` for a level, `>` for the rest. The caller owns
   * the subscription, which the broker has when this resolves.
   */
  subscribe(pattern: string, signal: AbortSignal): Promise<BrokerSubscription>;
  /**
   * Stops intake for good: `deliveries` ends after what has arrived; all else goes on. Fulfils when
   * nothing that is published later comes to this session. Idempotent; never rejects.
   */
  pause(): Promise<void>;
}

/** What the consumer of calls has of a session. */
export type ConsumedSession = Pick<
  BrokerSession,
  "redelivers" | "mayReplay" | "deliveries" | "closed" | "publish" | "subscribe" | "pause"
>;

/** Which queue of the group holds the calls of a tool, by the manifest of the moment. */
export interface ToolPlacement {
  /** Undefined for a tool that the manifest does not name. */
  queueOf(toolName: string): string | undefined;
  /** Tools of the manifest in queues that this worker does not consume. */
  foreignTools(): readonly string[];
}

/** The calls of lost connections that still run in this worker. */
export interface UnsettledCalls {
  /**
   * How many deliveries of a queue the next connection may leave unsettled: the limit less such
   * calls, at least 1. Calls `onRelease` for each of them that ends while the connection lasts.
   */
  permitsOf(queue: string, limit: number, onRelease: () => void): number;
}

/** A way to open sessions. `connect` makes one attempt; `reconnecting` retries. */
export interface Broker {
  /** For logs: `memory`, `dev`. */
  readonly kind: string;
  /** Opens a session that serves `tools`; `unsettled` counts against its prefetch limits. */
  connect(
    tools: readonly string[],
    signal: AbortSignal,
    unsettled?: UnsettledCalls,
  ): Promise<BrokerSession>;
}

export class BrokerError extends Error {
  /** Whether another attempt with the same configuration can succeed. */
  readonly transient: boolean;

  constructor(message: string, options: { cause?: unknown; transient: boolean }) {
    super(message, { cause: options.cause });
    this.name = "BrokerError";
    this.transient = options.transient;
  }
}
