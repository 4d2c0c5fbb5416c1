/**
 * What lives on the broker: names and arguments of exchanges and queues, and how they are declared.
 *
 * ```
 *  agents ──► exchange (topic) ──► {ns}/q/sandbox/{group}  (quorum, one per queue of the group) ──► workers of the group
 *                   ▲                        │ rejected, or delivered too often
 *  answers ─────────┘                        ▼
 *                        {exchange}/dead-letter (fanout) ──► {ns}/q/dead-letter/sandbox  (quorum)
 * ```
 *
 * All of it is durable and every worker declares it alike. A worker that serves nothing declares
 * nothing that exists.
 */
import type { Channel } from "amqplib";
import { groupQueue } from "../../protocol/queue-names.ts";
import { invokeTopic } from "../../protocol/topics.ts";
import type { AmqpConfig } from "./config.ts";
import { routingKey } from "./routing-keys.ts";

/** Calls kept in the dead-letter queue; of more, the oldest go. */
const maxDeadLetters = 10_000;

/**
 * Milliseconds after which the broker removes a queue that no worker serves, with the calls in it.
 */
const queueExpiryMs = 24 * 3_600_000;

/** What decides names and arguments. */
export interface TopologyOptions extends Pick<
  AmqpConfig,
  "exchange" | "maxDeliveries" | "consumerTimeoutSeconds"
> {
  readonly namespace: string;
  readonly group: string;
}

/** The layout of one namespace. */
export class Topology {
  readonly exchange: string;
  readonly #options: TopologyOptions;
  /** The namespace as topics are built from it. */
  readonly #namespace: string;

  constructor(options: TopologyOptions) {
    this.#options = options;
    this.#namespace = options.namespace.replace(/\/+$/, "");
    this.exchange = options.exchange ?? this.#namespace;
  }

  /** The name on the broker of a queue of the group. */
  addressOf(queue: string): string {
    return groupQueue(this.#namespace, this.#options.group, queue);
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

  /** Declares a queue of the group. */
  async declareQueue(channel: Channel, queue: string): Promise<void> {
    const { maxDeliveries, consumerTimeoutSeconds } = this.#options;
    await channel.assertQueue(this.addressOf(queue), {
      durable: true,
      arguments: {
        "x-queue-type": "quorum",
        // The limit counts how often a call may come back, the first delivery is not counted.
        "x-delivery-limit": maxDeliveries - 1,
        "x-dead-letter-exchange": this.#deadLetterExchange,
        // A call leaves its queue after it has arrived in the next one; RabbitMQ asks for this way
        // to overflow then.
        "x-dead-letter-strategy": "at-least-once",
        "x-overflow": "reject-publish",
        "x-consumer-timeout": consumerTimeoutSeconds * 1_000,
        "x-expires": queueExpiryMs,
      },
    });
  }

  /** Routes the calls of a tool into a queue of the group. */
  async bind(channel: Channel, toolName: string, queue: string): Promise<void> {
    await channel.bindQueue(this.addressOf(queue), this.exchange, this.#callsOf(toolName));
  }

  /**
   * Routes no calls of the tool into the queue; those in it stay. A binding that does not exist is
   * no error.
   */
  async unbind(channel: Channel, toolName: string, queue: string): Promise<void> {
    await channel.unbindQueue(this.addressOf(queue), this.exchange, this.#callsOf(toolName));
  }

  get #deadLetterExchange(): string {
    return `${this.exchange}/dead-letter`;
  }

  #callsOf(toolName: string): string {
    return routingKey(invokeTopic(this.#namespace, toolName));
  }
}
