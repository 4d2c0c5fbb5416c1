/**
 * The broker contract: what the worker needs of a message broker, and nothing more.
 */

/**
 * How a delivery ends, in Solace's three outcomes.
 *
 * | outcome    | meaning                                       | RabbitMQ          | DevBroker |
 * |------------|-----------------------------------------------|-------------------|-----------|
 * | `accepted` | answered; never deliver it again              | ack               | nothing   |
 * | `failed`   | not handled; another worker may take it       | reject, requeue   | nothing   |
 * | `rejected` | nobody can handle it; dead-letter it          | reject            | nothing   |
 */
export type Settlement = "accepted" | "failed" | "rejected";

/** One message for this worker. */
export interface Delivery {
  readonly topic: string;
  /** The queue of the worker group that it came through, where the broker has queues. */
  readonly queue?: string;
  /** UTF-8 JSON as it came; the receiver decodes it. */
  readonly payload: Uint8Array;
  /** Whether the broker has handed this message out before. */
  readonly redelivered: boolean;
  /**
   * How often it has, this time included; 2 for any but the first where the broker does not count.
   */
  readonly deliveryCount: number;
  /**
   * How often it does so at most, before it puts the message aside where no worker sees it;
   * undefined where it does so without end, never twice, or where nobody can know.
   */
  readonly maxDeliveries: number | undefined;
  /** User properties; values that are not strings arrive as their JSON text. */
  readonly properties: Readonly<Record<string, string>>;
  /**
   * Epoch milliseconds by the broker's own clock when it took the message; missing where it does
   * not tell.
   */
  readonly brokerTimeMs?: number;
  /** By what its sender tells answers apart, where the broker's messages have a place for that. */
  readonly correlationId?: string;
  /**
   * Whether its connection is gone by now, and the broker hands the message out again: to settle
   * this tells it nothing.
   */
  readonly isLost?: boolean;
  /** Tells the broker how the message ended. Idempotent: the first outcome wins. */
  settle(outcome: Settlement): Promise<void>;
}

/**
 * A message of ours. The adapter adds the property `timestamp` (epoch milliseconds) that peers
 * expect, unless it is there.
 */
export interface OutboundMessage {
  readonly topic: string;
  /** UTF-8 JSON. */
  readonly payload: Uint8Array;
  readonly properties?: Readonly<Record<string, string | number | boolean>>;
  /** That of the message which it answers. */
  readonly correlationId?: string;
  /**
   * Whether it tells of progress only: an operator may have it sent without confirmation, so that
   * some get lost.
   */
  readonly isStatus?: boolean;
  /**
   * Whether it is published again when the broker refuses it for the time being, after pauses of a
   * minute and a half in all. A session that reconnects does so.
   */
  readonly isRetried?: boolean;
  /**
   * Seconds after which nobody needs it any more. Where a broker can forget a message without
   * keeping it as a dead letter, it does; others keep it as they keep every message.
   */
  readonly timeToLiveSeconds?: number;
}

/**
 * What the broker said of a message: that it has it, or that it has it and that nobody is there to
 * get it. Brokers that cannot tell say `confirmed`.
 */
export type PublishOutcome = "confirmed" | "unroutable";

/** A message that everybody gets who subscribes to its topic. */
export type HeardMessage = Pick<Delivery, "topic" | "payload" | "properties">;

/**
 * Messages of one pattern from the time of subscribing on, in order, pulled by a single consumer.
 * Ends with the session and when it is disposed.
 */
export interface BrokerSubscription extends AsyncIterable<HeardMessage>, AsyncDisposable {
  /** How many messages were lost because nobody pulled them: the oldest go first. */
  readonly dropped: number;
}

/** What the session tells when it ended. */
export interface SessionEnd {
  readonly reason: "asked" | "lost";
  readonly cause?: unknown;
}

/**
 * A live connection. Its owner disposes it; disposal closes the connection and ends `deliveries`.
 */
export interface BrokerSession extends AsyncDisposable {
  /**
   * Whether a delivery that was settled `failed`, or not settled when the session ends, comes
   * again, to this session or to another. Where it does not, whoever gives a call up has to answer
   * it.
   */
  readonly redelivers: boolean;
  /** Whether an administrator can have settled calls delivered again, to any worker. */
  readonly mayReplay?: boolean;
  /**
   * What keeps every call from coming, or every answer from going, though there is a connection; in
   * words for an operator, as it is now. Missing where nothing is known of that.
   */
  readonly notReadyReasons?: readonly string[];
  /**
   * Messages of the served tools, pulled: the consumer sets the pace. Single consumer. Ends when
   * the session ends, and when it was paused and has nothing left to hand out.
   */
  readonly deliveries: AsyncIterable<Delivery>;
  /** Fulfils when the session ended, by request or by loss; never rejects. */
  readonly closed: Promise<SessionEnd>;
  /**
   * Receives the calls of a tool, unless paused: shared work where the broker has queues, and there
   * through the queue that the tool has now and no other of the group. Idempotent.
   */
  serve(toolName: string, signal: AbortSignal): Promise<void>;
  /**
   * Receives no more calls of a tool. The queue of a group keeps them coming, since other workers
   * of the group may serve the tool: the consumer requeues or answers what it does not serve. A
   * queue loses a tool that by the manifest other workers serve. Idempotent.
   */
  leave(toolName: string, signal: AbortSignal): Promise<void>;
  /** Publishes one message; resolves when the broker confirmed it. Throws BrokerError. */
  publish(message: OutboundMessage, signal: AbortSignal): Promise<PublishOutcome>;
  /**
   * Hears every message whose topic matches the pattern (`*` for a level, `>` for the rest), as
   * does everybody else who subscribes. When it resolves the broker has it. The caller owns the
   * subscription. Throws BrokerError.
   */
  subscribe(pattern: string, signal: AbortSignal): Promise<BrokerSubscription>;
  /**
   * Stops intake for good. The session takes no new work from the broker, hands out what it had
   * received or was just receiving, and then ends `deliveries`; `publish`, `leave` and `settle` go
   * on working. Fulfils when nothing that is published from now on comes to this session.
   * Idempotent; never rejects, since a session that ended takes nothing.
   */
  pause(): Promise<void>;
}

/** Which queue of the group holds the calls of a tool, as the manifest is now. */
export interface ToolPlacement {
  /** Undefined for a tool that the manifest does not name. */
  queueOf(toolName: string): string | undefined;
  /**
   * Tools of the manifest that other workers serve: their queues are none that this worker
   * consumes.
   */
  foreignTools(): readonly string[];
}

/** How many deliveries of one queue a connection may leave unsettled. */
export interface PrefetchPermits {
  /** The queue's limit less the calls of lost connections that still run here; at least 1. */
  readonly available: number;
  /**
   * Calls `listener` for each permit that such a call releases later, as long as the connection
   * lasts.
   */
  onRelease(listener: () => void): void;
}

/** The calls of lost connections that still run in this worker. */
export interface UnsettledCalls {
  /** The permits of the next connection for a queue with this limit. */
  permitsOf(queue: string, limit: number): PrefetchPermits;
}

/**
 * A way to open sessions. `connect` makes one attempt; retrying is the `reconnecting` decorator's.
 */
export interface Broker {
  /** Short name for logs: `memory`, `dev`. */
  readonly kind: string;
  /**
   * Opens a session that already serves `tools`. Throws BrokerError when it cannot; leaves nothing
   * open then.
   *
   * @param carried calls that count against the prefetch limits of the session; none by default
   */
  connect(
    tools: readonly string[],
    signal: AbortSignal,
    carried?: UnsettledCalls,
  ): Promise<BrokerSession>;
}

/**
 * A failure of the broker or of the connection to it. Never leaves the broker's callers
 * unhandled.
 */
export class BrokerError extends Error {
  /**
   * Whether another attempt with the same configuration can succeed (false: credentials, refused
   * client).
   */
  readonly transient: boolean;

  constructor(message: string, options: { cause?: unknown; transient: boolean }) {
    super(message, { cause: options.cause });
    this.name = "BrokerError";
    this.transient = options.transient;
  }
}
