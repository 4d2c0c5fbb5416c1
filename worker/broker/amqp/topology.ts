/**
 * What lives on the broker: names and arguments of exchanges and queues.
 *
 * ```
 *  agents ──► exchange (topic) ──► {ns}/q/sandbox/{group}  (quorum, one per queue of the group) ──► workers of the group
 *                   ▲                        │ rejected, or delivered too often
 *  answers ─────────┘                        ▼
 *                        {exchange}/dead-letter (fanout) ──► {ns}/q/dead-letter/sandbox  (quorum)
 * ```
 *
 * All of it is durable and every worker declares it alike. A session that serves nothing declares
 * the exchange only where it is missing, so that clients need no permission for it.
 */
import type { Channel } from "amqplib";
import { groupQueue } from "../../protocol/queue-names.ts";
import { invokeTopic } from "../../protocol/topics.ts";
import { logEvent } from "../../telemetry/log-event.ts";
import { type BrokerLog, reasonOf } from "../log.ts";
import type { AmqpConfig } from "./config.ts";
import type { AmqpConnection } from "./connection.ts";
import { isNotFound } from "./failures.ts";
import { routingKey } from "./routing-keys.ts";

/** Calls kept in the dead-letter queue; of more, the oldest go. */
const maxDeadLetters = 10_000;

/** Milliseconds after which the broker removes a queue without a worker, and its calls. */
const queueExpiryMs = 24 * 3_600_000;

export interface TopologyOptions extends Pick<
  AmqpConfig,
  "exchange" | "maxDeliveries" | "consumerTimeoutSeconds"
> {
  readonly namespace: string;
  readonly group: string;
  readonly log: BrokerLog;
}

/** The layout of one namespace. */
export class Topology {
  readonly exchange: string;
  readonly #onChannel: AmqpConnection["onChannel"];
  readonly #options: TopologyOptions;
  readonly #namespace: string;

  constructor(connection: AmqpConnection, options: TopologyOptions) {
    this.#onChannel = connection.onChannel.bind(connection);
    this.#options = options;
    this.#namespace = options.namespace.replace(/\/+$/, "");
    this.exchange = options.exchange ?? this.#namespace;
  }

  /** The name on the broker of a queue of the group. */
  addressOf(queue: string): string {
    return groupQueue(this.#namespace, this.#options.group, queue);
  }

  /** Declares the exchange if it is missing; needs no permission otherwise. */
  async findExchange(signal: AbortSignal): Promise<void> {
    try {
      await this.#checkExchange(signal);
    } catch (error) {
      if (!isNotFound(error)) throw error;
      await this.#onChannel(this.#declaring, (channel) => this.#declareExchange(channel), signal);
    }
  }

  /** Declares what calls, answers and dead letters go through. */
  async declareExchanges(signal: AbortSignal): Promise<void> {
    const queue = `${this.#namespace}/q/dead-letter/sandbox`;
    const limits = { "x-queue-type": "quorum", "x-max-length": maxDeadLetters };
    const declare = async (channel: Channel): Promise<void> => {
      await this.#declareExchange(channel);
      await channel.assertExchange(this.#deadLetterExchange, "fanout", { durable: true });
      await channel.assertQueue(queue, { durable: true, arguments: limits });
      await channel.bindQueue(queue, this.#deadLetterExchange, "");
    };
    await this.#onChannel(this.#declaring, declare, signal);
  }

  /** Restores the exchanges. RabbitMQ does not report that an operator removed one. */
  async restore(signal: AbortSignal): Promise<void> {
    try {
      await this.#checkExchange(signal);
    } catch (error) {
      if (!isNotFound(error)) throw error;
      logEvent(this.#options.log, "exchange.missing", { reason: reasonOf(error) });
    }
    await this.declareExchanges(signal);
  }

  async declareQueue(queue: string, signal: AbortSignal): Promise<void> {
    const { maxDeliveries, consumerTimeoutSeconds } = this.#options;
    const address = this.addressOf(queue);
    const options = {
      durable: true,
      arguments: {
        "x-queue-type": "quorum",
        // The first delivery does not count.
        "x-delivery-limit": maxDeliveries - 1,
        "x-dead-letter-exchange": this.#deadLetterExchange,
        // A dead letter leaves its queue after it arrived in the next one; RabbitMQ then demands
        // this overflow.
        "x-dead-letter-strategy": "at-least-once",
        "x-overflow": "reject-publish",
        "x-consumer-timeout": consumerTimeoutSeconds * 1_000,
        "x-expires": queueExpiryMs,
      },
    };
    const declare = (channel: Channel) => channel.assertQueue(address, options);
    await this.#onChannel(`declare the queue ${address}`, declare, signal);
  }

  /** Routes the calls of a tool into a queue of the group. Idempotent. */
  async bind(toolName: string, queue: string, signal: AbortSignal): Promise<void> {
    const address = this.addressOf(queue);
    const key = this.#callsOf(toolName);
    const bind = (channel: Channel) => channel.bindQueue(address, this.exchange, key);
    await this.#onChannel(`bind the queue ${address}`, bind, signal);
  }

  /** Routes no more calls of a tool into a queue; those in it stay. Idempotent. */
  async unbind(toolName: string, queue: string, signal: AbortSignal): Promise<void> {
    const address = this.addressOf(queue);
    const key = this.#callsOf(toolName);
    const unbind = (channel: Channel) => channel.unbindQueue(address, this.exchange, key);
    try {
      await this.#onChannel(`unbind the queue ${address}`, unbind, signal);
    } catch (error) {
      // A queue that does not exist has no binding.
      if (!isNotFound(error)) throw error;
    }
  }

  get #declaring(): string {
    return `declare the exchange ${this.exchange}`;
  }

  get #deadLetterExchange(): string {
    return `${this.exchange}/dead-letter`;
  }

  async #checkExchange(signal: AbortSignal): Promise<void> {
    const check = (channel: Channel) => channel.checkExchange(this.exchange);
    await this.#onChannel(`find the exchange ${this.exchange}`, check, signal);
  }

  #declareExchange(channel: Channel): Promise<unknown> {
    return channel.assertExchange(this.exchange, "topic", { durable: true });
  }

  #callsOf(toolName: string): string {
    return routingKey(invokeTopic(this.#namespace, toolName));
  }
}
