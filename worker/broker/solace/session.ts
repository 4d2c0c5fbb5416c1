/**
 * A session over one session of the library: flows from the queues of tools, the intake of their calls, the way out for
 * answers, and what else is heard.
 */
import { type Clock, systemClock } from "../../support/clock.ts";
import {
  type BrokerSession,
  type BrokerSubscription,
  type CarriedWork,
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
import { Serving } from "./serving.ts";
import { Audience } from "./subscription.ts";

/** Where the broker is, how its queues are made, and how much to take from them. */
export interface SolaceBrokerOptions
  extends ConnectionOptions, QueuesOptions, Pick<SolaceConfig, "statusDelivery"> {
  /** Deliveries that are received and not settled, at most. */
  readonly maxUnsettled: number;
  /** Whether a call of a tool may be handed out again though nobody knows whether it has begun; none may unless told. */
  readonly isRepeatable?: (toolName: string) => boolean;
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
  carried?: CarriedWork,
): Promise<BrokerSession> {
  await using stack = new AsyncDisposableStack();
  const connection = await SolaceConnection.open(options, signal);
  const session = stack.use(new SolaceSession(connection, options, carried));
  await session.begin(tools, signal);
  stack.move();
  return session;
}

class SolaceSession implements BrokerSession {
  readonly redelivers = true;
  readonly deliveries: AsyncIterable<Delivery>;
  readonly closed: Promise<SessionEnd>;
  readonly #connection: SolaceConnection;
  readonly #publisher: Publisher;
  readonly #intake: Intake;
  readonly #serving: Serving;
  readonly #audience: Audience;
  #pausing: Promise<void> | undefined;
  #closing: Promise<void> | undefined;

  constructor(
    connection: SolaceConnection,
    options: SolaceBrokerOptions,
    carried: CarriedWork | undefined,
  ) {
    const clock = options.clock ?? systemClock;
    this.#connection = connection;
    this.#publisher = new Publisher(connection, clock, options.statusDelivery);
    const intake = new Intake(connection, { ...options, clock }, carried);
    this.#intake = intake;
    const { log, isRepeatable = () => false } = options;
    const queues = new Queues(options);
    this.#serving = new Serving({ connection, queues, intake, isRepeatable, log, clock });
    this.#audience = new Audience(connection);
    this.deliveries = this.#intake.deliveries;
    this.closed = connection.closed;
  }

  get impediments(): readonly string[] {
    return this.#serving.isWithoutQueue ? [withoutQueue] : [];
  }

  /** Serves the tools that it starts with. Throws BrokerError when it can serve none, or the signal's reason when it aborts. */
  async begin(tools: readonly string[], signal: AbortSignal): Promise<void> {
    await this.#serving.begin(tools, signal);
  }

  async serve(toolName: string, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    await this.#serving.serve(toolName, signal);
  }

  async leave(toolName: string, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    await this.#serving.leave(toolName, signal);
  }

  publish(message: OutboundMessage, signal: AbortSignal): Promise<PublishOutcome> {
    return this.#publisher.publish(message, signal);
  }

  subscribe(pattern: string, signal: AbortSignal): Promise<BrokerSubscription> {
    return this.#audience.join(pattern, signal);
  }

  pause(): Promise<void> {
    this.#pausing ??= this.#completeIntake();
    return this.#pausing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing ??= this.#close();
    await this.#closing;
  }

  async #completeIntake(): Promise<void> {
    await this.#serving.stop();
    this.#intake.complete();
  }

  async #close(): Promise<void> {
    this.#intake.close();
    await this.#serving.close();
    await this.#connection[Symbol.asyncDispose]();
  }
}
