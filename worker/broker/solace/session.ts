/**
 * A session over one session of the library: flows from the queues of tools, the intake of their calls, the way out for
 * answers, and what else is heard.
 */
import { type Clock, systemClock } from "../../support/clock.ts";
import {
  BrokerError,
  type BrokerSession,
  type BrokerSubscription,
  type Delivery,
  type OutboundMessage,
  type PublishOutcome,
  type SessionEnd,
  withoutQueue,
} from "../broker.ts";
import type { SolaceConfig } from "./config.ts";
import { SolaceConnection } from "./connection.ts";
import { Intake } from "./intake.ts";
import type { ConnectionOptions } from "./library-session.ts";
import { Publisher } from "./publisher.ts";
import { Queues, type QueuesOptions } from "./queues.ts";
import { Audience } from "./subscription.ts";

/** Where the broker is, how its queues are made, and how much to take from them. */
export interface SolaceBrokerOptions
  extends ConnectionOptions, QueuesOptions, Pick<SolaceConfig, "statusDelivery"> {
  /** Deliveries that are received and not settled, at most. */
  readonly maxUnsettled: number;
  readonly clock?: Clock;
}

/**
 * Connects and serves. A tool whose queue cannot be had is served as soon as it can. Throws BrokerError, when no tool at all can
 * be served too, or the signal's reason when it aborts; leaves nothing open then.
 */
export async function openSession(
  options: SolaceBrokerOptions,
  tools: readonly string[],
  signal: AbortSignal,
): Promise<BrokerSession> {
  await using stack = new AsyncDisposableStack();
  const connection = await SolaceConnection.open(options, signal);
  const session = stack.use(new SolaceSession(connection, options));
  await session.begin(tools, signal);
  stack.move();
  return session;
}

function unserved(first: BrokerError, failures: ReadonlyMap<string, BrokerError>): BrokerError {
  if (failures.size === 1) return first;
  return new BrokerError(`None of ${failures.size} tools can be served. ${first.message}`, {
    cause: first.cause,
    transient: failures.values().some(({ transient }) => transient),
  });
}

class SolaceSession implements BrokerSession {
  readonly redelivers = true;
  readonly deliveries: AsyncIterable<Delivery>;
  readonly closed: Promise<SessionEnd>;
  readonly #connection: SolaceConnection;
  readonly #queues: Queues;
  readonly #publisher: Publisher;
  readonly #intake: Intake;
  readonly #audience: Audience;
  #pausing: Promise<void> | undefined;
  #closing: Promise<void> | undefined;

  constructor(connection: SolaceConnection, options: SolaceBrokerOptions) {
    const clock = options.clock ?? systemClock;
    this.#connection = connection;
    this.#queues = new Queues(options);
    this.#publisher = new Publisher(connection, clock, options.statusDelivery);
    this.#intake = new Intake(connection, this.#queues, options);
    this.#audience = new Audience(connection);
    this.deliveries = this.#intake.deliveries;
    this.closed = connection.closed;
  }

  get impediments(): readonly string[] {
    return this.#intake.isWithoutQueue ? [withoutQueue] : [];
  }

  /** Serves the tools that it starts with. One that it cannot serve it tries again; throws when that is so with all of them. */
  async begin(tools: readonly string[], signal: AbortSignal): Promise<void> {
    const failures = new Map<string, BrokerError>();
    for (const tool of tools) {
      try {
        await this.serve(tool, signal);
      } catch (error) {
        signal.throwIfAborted();
        this.#connection.ended.throwIfAborted();
        failures.set(tool, error as BrokerError);
      }
    }
    const [first] = failures.values();
    if (first !== undefined && failures.size === tools.length) throw unserved(first, failures);
    for (const [tool, failure] of failures) this.#intake.sourceOf(tool)?.serveLater(tool, failure);
  }

  async serve(toolName: string, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    await this.#intake.serve(toolName, signal);
  }

  async leave(toolName: string, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (!this.#queues.hasOneQueue) return this.#intake.cancel(toolName);
    const topic = this.#queues.topicOf(toolName);
    await this.#intake.sourceOf(toolName)?.repel(toolName, topic, signal);
  }

  publish(message: OutboundMessage, signal: AbortSignal): Promise<PublishOutcome> {
    return this.#publisher.publish(message, signal);
  }

  subscribe(pattern: string, signal: AbortSignal): Promise<BrokerSubscription> {
    return this.#audience.join(pattern, signal);
  }

  pause(): Promise<void> {
    this.#pausing ??= this.#intake.complete();
    return this.#pausing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing ??= this.#close();
    await this.#closing;
  }

  async #close(): Promise<void> {
    await this.#intake.close();
    await this.#connection[Symbol.asyncDispose]();
  }
}
