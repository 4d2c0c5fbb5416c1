/**
 * What lives on the broker: the names of queues, and how a worker binds to them.
 *
 * ```
 *  agents ──► {ns}/a2a/v1/sam_remote_tool/invoke/{tool}
 *                   │ subscription of the queue
 *                   ▼
 *  {ns}/q/sandbox/{group}  (durable, non-exclusive, one per queue of the group) ──► workers of the group
 *                   │ rejected, expired, or handed out too often
 *                   ▼
 *  #DEAD_MSG_QUEUE  (if the broker has one, and for messages that are eligible)
 * ```
 *
 * A worker takes an existing queue as it is, and creates a missing one where the broker permits it.
 */
import solace from "solclientjs";
import { maxMessageBytes } from "../../protocol/limits.ts";
import { groupQueue } from "../../protocol/queue-names.ts";
import { invokeTopic } from "../../protocol/topics.ts";
import { logEvent } from "../../telemetry/log-event.ts";
import { BrokerError } from "../broker.ts";
import type { BrokerLog } from "../log.ts";
import type { SolaceConfig } from "./config.ts";
import type { SolaceConnection } from "./connection.ts";
import { isNotPermitted, isUnknownQueue } from "./failures.ts";
import { queueDescriptor } from "./library/flow-properties.ts";
import { Flow, type FlowOptions } from "./flow.ts";

const maxRedeliveries = 255;

/** Bytes of the largest message of a queue: a call, with room for its properties. */
const messageBytes = maxMessageBytes + 2_000_000;

/** Megabytes of calls that may wait: Solace's default for queues of administrators. */
const quotaMb = 5_000;

const maxNameBytes = 200;

export interface TopologyOptions extends Pick<SolaceConfig, "maxDeliveries"> {
  readonly namespace: string;
  readonly group: string;
  readonly log: BrokerLog;
}

/** The layout of one namespace. */
export class Topology {
  readonly #options: TopologyOptions;
  /** What is logged once: a queue is bound to again and again. */
  readonly #logged = new Set<string>();

  constructor(options: TopologyOptions) {
    this.#options = options;
  }

  /** The name on the broker of a queue of the group. */
  addressOf(queue: string): string {
    const { namespace, group } = this.#options;
    return groupQueue(namespace, group, queue);
  }

  /** Binds to a queue of the group, and creates a missing one. */
  async bind(
    connection: SolaceConnection,
    { queue, onMessage }: FlowOptions,
    signal: AbortSignal,
  ): Promise<Flow> {
    const options = { queue: this.addressOf(queue), onMessage };
    checkName(options.queue);
    const flow = await this.#open(connection, options, signal);
    if (flow.facts.isExclusive) {
      await flow.close();
      throw exclusive(options.queue);
    }
    this.#compareLimit(flow);
    this.#compareSize(flow);
    return flow;
  }

  async subscribe(flow: Flow, toolName: string, signal: AbortSignal): Promise<void> {
    const { queue } = flow;
    const topic = this.#topicOf(toolName);
    try {
      await flow.subscribe(topic, signal);
    } catch (error) {
      // Where queues are an administrator's, their subscriptions are as well.
      if (!isNotPermitted(error)) throw error;
      if (this.#isNew(`subscribe ${topic}`))
        logEvent(this.#options.log, "queue.subscribe_refused", { queue, topic, err: error });
    }
  }

  async unsubscribe(flow: Flow, toolName: string, signal: AbortSignal): Promise<void> {
    const { queue } = flow;
    try {
      await flow.unsubscribe(this.#topicOf(toolName), signal);
    } catch (error) {
      if (!isNotPermitted(error)) throw error;
      if (this.#isNew(`unsubscribe ${queue}`))
        logEvent(this.#options.log, "queue.unsubscribe_refused", { queue, err: error });
    }
  }

  #topicOf(toolName: string): string {
    return invokeTopic(this.#options.namespace, toolName);
  }

  #isNew(event: string): boolean {
    const isNew = !this.#logged.has(event);
    this.#logged.add(event);
    return isNew;
  }

  async #open(
    connection: SolaceConnection,
    options: FlowOptions,
    signal: AbortSignal,
  ): Promise<Flow> {
    // Creating first would fail for users who may not, even if the queue exists.
    try {
      return await Flow.open(connection, options, signal);
    } catch (error) {
      if (!isUnknownQueue(error)) throw error;
    }
    await this.#create(connection, options.queue, signal);
    return Flow.open(connection, options, signal);
  }

  async #create(connection: SolaceConnection, queue: string, signal: AbortSignal): Promise<void> {
    const properties = Object.assign(new solace.QueueProperties(), {
      accessType: solace.QueueAccessType.NONEXCLUSIVE,
      // Of other users: workers may have users of their own.
      permissions: solace.QueuePermissions.MODIFY_TOPIC,
      respectsTTL: true,
      quotaMB: quotaMb,
      maxMessageSize: messageBytes,
      // The first delivery does not count.
      maxMessageRedelivery: Math.min(this.#options.maxDeliveries - 1, maxRedeliveries),
    } satisfies solace.QueueProperties);
    // Another worker may have been faster.
    const ignoreExists = true;
    const create = (key: string): void =>
      connection.session.provisionEndpoint(queueDescriptor(queue), properties, ignoreExists, key);
    try {
      await connection.request(`make the queue ${queue}`, create, signal);
    } catch (error) {
      throw isNotPermitted(error) ? missing(queue, (error as BrokerError).cause) : error;
    }
    logEvent(this.#options.log, "queue.created", { queue });
  }

  #compareLimit({ queue, facts }: Flow): void {
    const { maxDeliveries: configured, log } = this.#options;
    const maxDeliveries = facts.maxDeliveries ?? "unlimited";
    if (maxDeliveries === configured || !this.#isNew(`limit ${queue} ${maxDeliveries}`)) return;
    logEvent(log, "queue.delivery_limit_differs", { queue, maxDeliveries, configured });
  }

  #compareSize({ queue, facts: { maxMessageBytes: limit } }: Flow): void {
    if (limit >= messageBytes || !this.#isNew(`size ${queue}`)) return;
    const facts = { queue, maxMessageBytes: limit, needed: messageBytes };
    logEvent(this.#options.log, "queue.message_size_too_small", facts);
  }
}

function checkName(queue: string): void {
  if (queue.length <= maxNameBytes) return;
  throw new BrokerError(
    `The name of the queue ${queue} has ${queue.length} bytes; Solace allows ${maxNameBytes}: ` +
      "choose a shorter WORKER_GROUP, or a shorter namespace",
    { transient: false },
  );
}

function exclusive(queue: string): BrokerError {
  return new BrokerError(
    `The queue ${queue} is exclusive: it hands all calls to one worker, and others would wait in vain. ` +
      "Make it non-exclusive, or delete it when it is empty and nobody uses it; the worker then makes it anew",
    { transient: false },
  );
}

function missing(queue: string, cause: unknown): BrokerError {
  return new BrokerError(
    `There is no queue ${queue}, and the broker does not let the user make it. Make it (durable, non-exclusive), or ` +
      "allow the client profile of the user to create guaranteed endpoints",
    { cause, transient: false },
  );
}
