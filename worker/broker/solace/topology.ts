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
 * A worker takes an existing queue as it is, and makes a missing one where the broker permits it.
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
import { queueDescriptor } from "./flow-properties.ts";
import { isNotPermitted, isUnknownQueue } from "./failures.ts";
import { Flow, type FlowOptions } from "./flow.ts";

/** Most that a queue can be told of how often to hand a message out again. */
const maxRedeliveries = 255;

/**
 * Bytes of the largest message that a queue takes: a call of the largest size, with room for its
 * properties.
 */
const messageBytes = maxMessageBytes + 2_000_000;

/**
 * Megabytes of calls that may wait in a queue: what Solace gives to queues that administrators
 * make.
 */
const quotaMb = 5_000;

/** Longest name of a queue. */
const maxNameBytes = 200;

/** What decides names and properties. */
export interface TopologyOptions extends Pick<SolaceConfig, "maxDeliveries"> {
  readonly namespace: string;
  readonly group: string;
  readonly log: BrokerLog;
}

/** The queues of one namespace. */
export class Topology {
  readonly #options: TopologyOptions;
  /** Limits that were told of, by queue: a queue is bound to again and again. */
  readonly #toldLimits = new Map<string, number | undefined>();
  /** Topology whose largest message was told of. */
  readonly #toldSizes = new Set<string>();
  /**
   * Topics and queues whose subscriptions only an administrator may change, and that were told of.
   */
  readonly #toldSubscriptions = new Set<string>();

  constructor(options: TopologyOptions) {
    this.#options = options;
  }

  /**
   * Binds to a queue of the group, and makes a missing one. Throws BrokerError, or the signal's
   * reason.
   */
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

  /** Routes the calls of a tool into a queue. Throws BrokerError, or the signal's reason. */
  async attract(flow: Flow, toolName: string, signal: AbortSignal): Promise<void> {
    const topic = this.#topicOf(toolName);
    try {
      await flow.attract(topic, signal);
    } catch (error) {
      if (!this.#isFirstRefusal(error, topic)) return;
      logEvent(this.#options.log, "queue.subscribe_refused", {
        queue: flow.queue,
        topic,
        err: error,
      });
    }
  }

  /** Routes no more calls of a tool into a queue. Throws BrokerError, or the signal's reason. */
  async repel(flow: Flow, toolName: string, signal: AbortSignal): Promise<void> {
    try {
      await flow.repel(this.#topicOf(toolName), signal);
    } catch (error) {
      if (!this.#isFirstRefusal(error, flow.queue)) return;
      logEvent(this.#options.log, "queue.unsubscribe_refused", { queue: flow.queue, err: error });
    }
  }

  /** The name on the broker of a queue of the group. */
  addressOf(queue: string): string {
    const { namespace, group } = this.#options;
    return groupQueue(namespace, group, queue);
  }

  /** Where agents publish the calls of a tool. */
  #topicOf(toolName: string): string {
    return invokeTopic(this.#options.namespace, toolName);
  }

  /**
   * Where queues are an administrator's, their subscriptions are as well. Throws any other error.
   */
  #isFirstRefusal(error: unknown, key: string): boolean {
    if (!isNotPermitted(error)) throw error;
    const isFirst = !this.#toldSubscriptions.has(key);
    this.#toldSubscriptions.add(key);
    return isFirst;
  }

  async #open(
    connection: SolaceConnection,
    options: FlowOptions,
    signal: AbortSignal,
  ): Promise<Flow> {
    // Asking first whether it may be made would fail for users who may not, though the queue be
    // there.
    try {
      return await Flow.open(connection, options, signal);
    } catch (error) {
      if (!isUnknownQueue(error)) throw error;
    }
    await this.#make(connection, options.queue, signal);
    return Flow.open(connection, options, signal);
  }

  async #make(connection: SolaceConnection, queue: string, signal: AbortSignal): Promise<void> {
    const properties = Object.assign(new solace.QueueProperties(), {
      accessType: solace.QueueAccessType.NONEXCLUSIVE,
      // Of users other than the one that makes it: workers may have users of their own.
      permissions: solace.QueuePermissions.MODIFY_TOPIC,
      respectsTTL: true,
      quotaMB: quotaMb,
      maxMessageSize: messageBytes,
      // The limit counts how often a message may come back, the first delivery is not counted.
      maxMessageRedelivery: Math.min(this.#options.maxDeliveries - 1, maxRedeliveries),
    } satisfies solace.QueueProperties);
    try {
      await connection.request(
        `make the queue ${queue}`,
        // True: another worker may have been faster.
        (key) =>
          connection.session.provisionEndpoint(queueDescriptor(queue), properties, true, key),
        signal,
      );
    } catch (error) {
      throw isNotPermitted(error) ? missing(queue, (error as BrokerError).cause) : error;
    }
    logEvent(this.#options.log, "queue.created", { queue });
  }

  #compareLimit(flow: Flow): void {
    const { maxDeliveries, log } = this.#options;
    const limit = flow.facts.maxDeliveries;
    const told = this.#toldLimits.has(flow.queue)
      ? this.#toldLimits.get(flow.queue)
      : maxDeliveries;
    this.#toldLimits.set(flow.queue, limit);
    if (limit === told) return;
    logEvent(log, "queue.delivery_limit_differs", {
      queue: flow.queue,
      maxDeliveries: limit ?? "unlimited",
      configured: maxDeliveries,
    });
  }

  #compareSize({ queue, facts: { maxMessageBytes: limit } }: Flow): void {
    if (limit >= messageBytes || this.#toldSizes.has(queue)) return;
    this.#toldSizes.add(queue);
    logEvent(this.#options.log, "queue.message_size_too_small", {
      queue,
      maxMessageBytes: limit,
      needed: messageBytes,
    });
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
