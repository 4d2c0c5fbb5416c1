/**
 * What lives on the broker: names and arguments of exchanges and queues, and how they are declared.
 *
 * ```
 *  agents ──► exchange (topic) ──► {ns}/q/sandbox/tool/{tool}  (quorum, one per tool) ──► workers that serve the tool
 *                   ▲                        │ rejected, or handed out too often
 *  answers ─────────┘                        ▼
 *                        {exchange}/dead-letter (fanout) ──► {ns}/q/dead-letter/sandbox  (quorum)
 * ```
 *
 * All of it is durable and declared by every worker alike: whoever comes first makes it. Who serves nothing declares
 * nothing that is there.
 */
import type { Channel } from "amqplib";
import { toolQueue, workerQueue } from "../../protocol/queue-names.ts";
import { invokeTopic, parseInvokeTopic } from "../../protocol/topics.ts";
import type { AmqpConfig } from "./config.ts";
import { routingKey, topicOf } from "./routing-keys.ts";

/** Calls kept in the dead-letter queue; of more, the oldest go. */
const maxDeadLetters = 10_000;

/** Milliseconds after which the broker removes a queue that no worker serves, with the calls in it. */
const queueExpiryMs = 24 * 3_600_000;

/** What decides names and arguments. */
export interface TopologyOptions extends Pick<
  AmqpConfig,
  "exchange" | "queueMode" | "maxDeliveries" | "consumerTimeoutSeconds"
> {
  readonly namespace: string;
  readonly workerId: string;
}

/** The layout of one namespace. */
export class Topology {
  readonly exchange: string;
  /** Whether the calls of all tools come through one queue, which is this worker's alone. */
  readonly hasOneQueue: boolean;
  readonly #options: TopologyOptions;
  /** The namespace as topics are built from it. */
  readonly #namespace: string;

  constructor(options: TopologyOptions) {
    this.#options = options;
    this.#namespace = options.namespace.replace(/\/+$/, "");
    this.exchange = options.exchange ?? this.#namespace;
    this.hasOneQueue = options.queueMode === "worker";
  }

  /** The queue that the calls of a tool come through. */
  queueOf(toolName: string): string {
    const { namespace, workerId } = this.#options;
    return this.hasOneQueue ? workerQueue(namespace, workerId) : toolQueue(namespace, toolName);
  }

  /** The tool that a call is for; undefined for what is no call of this namespace. */
  toolOf(key: string): string | undefined {
    return parseInvokeTopic(this.#namespace, topicOf(key));
  }

  /** Rejects, and loses the channel, when there is no exchange yet. Needs no permission. */
  async checkExchange(channel: Channel): Promise<void> {
    await channel.checkExchange(this.exchange);
  }

  /** Declares the exchange that everybody publishes to. */
  async declareExchange(channel: Channel): Promise<void> {
    await channel.assertExchange(this.exchange, "topic", { durable: true });
  }

  /** Declares what answers and calls go through. */
  async declareExchanges(channel: Channel): Promise<void> {
    await this.declareExchange(channel);
    await channel.assertExchange(this.#deadLetterExchange, "fanout", { durable: true });
    const queue = `${this.#namespace}/q/dead-letter/sandbox`;
    await channel.assertQueue(queue, {
      durable: true,
      arguments: { "x-queue-type": "quorum", "x-max-length": maxDeadLetters },
    });
    await channel.bindQueue(queue, this.#deadLetterExchange, "");
  }

  /** Declares the queue of a tool and has the calls of the tool come into it. */
  async declareQueue(channel: Channel, toolName: string): Promise<void> {
    const queue = this.queueOf(toolName);
    const { maxDeliveries, consumerTimeoutSeconds } = this.#options;
    await channel.assertQueue(queue, {
      durable: true,
      arguments: {
        "x-queue-type": "quorum",
        // The limit counts how often a call may come back, the first delivery is not counted.
        "x-delivery-limit": maxDeliveries - 1,
        "x-dead-letter-exchange": this.#deadLetterExchange,
        // A call leaves its queue after it has arrived in the next one; RabbitMQ asks for this way to overflow then.
        "x-dead-letter-strategy": "at-least-once",
        "x-overflow": "reject-publish",
        "x-consumer-timeout": consumerTimeoutSeconds * 1_000,
        "x-expires": queueExpiryMs,
      },
    });
    await channel.bindQueue(queue, this.exchange, this.#callsOf(toolName));
  }

  /** No call of the tool comes into the queue any more; what is there stays. */
  async unbindQueue(channel: Channel, toolName: string): Promise<void> {
    await channel.unbindQueue(this.queueOf(toolName), this.exchange, this.#callsOf(toolName));
  }

  get #deadLetterExchange(): string {
    return `${this.exchange}/dead-letter`;
  }

  #callsOf(toolName: string): string {
    return routingKey(invokeTopic(this.#namespace, toolName));
  }
}
