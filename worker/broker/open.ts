/**
 * From configuration to a broker: loads only the adapter that is asked for.
 */
import { defaultGroup, defaultQueue } from "../protocol/queue-names.ts";
import type { Clock } from "../support/clock.ts";
import { parseAmqpUrl } from "./amqp/address.ts";
import type { AmqpConfig } from "./amqp/config.ts";
import { consumerTimeoutProblem, maxRunSeconds } from "./amqp/consumer-timeout.ts";
import type { Broker, ToolPlacement } from "./broker.ts";
import type { BrokerLog } from "./log.ts";
import { type ReconnectingBroker, reconnecting } from "./reconnecting.ts";
import { isEncrypted, parseSolaceHosts } from "./solace/address.ts";
import type { SolaceConfig } from "./solace/config.ts";

/** First bound of the delay between connection attempts; `connectRetryDelayMs` is the last. */
const firstRetryDelayMs = 100;

/**
 * Calls that a worker prefetches from a queue of RabbitMQ beyond its slots. The library of Solace
 * prefetches as many itself.
 */
const prefetchedCalls = 1;

/** Where nobody names the queues and their slots. */
const defaultQueues: ReadonlyMap<string, number> = new Map([[defaultQueue, 4]]);

/** Where nobody names queues for tools. */
const inDefaultQueue: ToolPlacement = { queueOf: () => defaultQueue, foreignTools: () => [] };

/** How patiently to connect. */
export interface ConnectPatience {
  /** Attempts per outage; 0 tries for ever. */
  readonly connectRetries: number;
  /** Milliseconds between attempts at most; the first ones follow each other faster. */
  readonly connectRetryDelayMs: number;
}

/** A DevBroker. */
export interface DevBrokerConfig extends ConnectPatience {
  readonly kind: "dev";
  readonly host: string;
  readonly port: number;
}

/** A RabbitMQ broker. */
export interface AmqpBrokerConfig extends ConnectPatience, AmqpConfig {
  readonly kind: "amqp";
}

/** A Solace broker. */
export interface SolaceBrokerConfig extends ConnectPatience, SolaceConfig {
  readonly kind: "solace";
}

/** Which broker, where, and how patiently. */
export type BrokerConfig = DevBrokerConfig | AmqpBrokerConfig | SolaceBrokerConfig;

/** What every adapter needs beside its own configuration. */
export interface OpenBrokerOptions {
  readonly namespace: string;
  readonly workerId: string;
  readonly log: BrokerLog;
  readonly clock?: Clock;
  /** Whose queues the session consumes; `default` unless given. */
  readonly group?: string;
  /**
   * The queues of the group that it consumes, with the slots of each; the default queue with 4
   * unless given.
   */
  readonly queues?: ReadonlyMap<string, number>;
  /** Where calls of tools wait; all in the default queue unless given. */
  readonly placement?: ToolPlacement;
  /** Told whenever the connection comes or goes, for readiness. */
  readonly onStateChange?: (connected: boolean) => void;
}

/**
 * Makes the broker that `config` describes, with reconnection. Nothing is opened before its
 * `connect`.
 */
export async function openBroker(
  config: BrokerConfig,
  options: OpenBrokerOptions,
): Promise<ReconnectingBroker> {
  return reconnecting(await loadAdapter(config, options), {
    ...options,
    maxAttempts: config.connectRetries,
    backoff: { baseMs: firstRetryDelayMs, capMs: config.connectRetryDelayMs },
  });
}

/** Whether a text is the URL of a RabbitMQ broker. */
export function isAmqpUrl(text: string): boolean {
  return parseAmqpUrl(text) !== undefined;
}

/** Whether a text names a Solace broker, or several that stand in for each other. */
export function isSolaceHost(text: string): boolean {
  return parseSolaceHosts(text) !== undefined;
}

/** Whether all hosts of a text are reached over TLS. */
export function isEncryptedSolaceHost(text: string): boolean {
  return isEncrypted(parseSolaceHosts(text) ?? []);
}

/**
 * Seconds that a call through a broker may run at most, whatever it asks for; Infinity where the
 * broker has no say.
 */
export function maxCallSeconds(config: BrokerConfig): number {
  return config.kind === "amqp" ? maxRunSeconds(config.consumerTimeoutSeconds) : Infinity;
}

/**
 * Why a broker cannot have a tool with this time limit called through it, or undefined when it can.
 */
export function timeLimitProblem(config: BrokerConfig, timeoutSeconds: number): string | undefined {
  if (config.kind !== "amqp") return undefined;
  return consumerTimeoutProblem(timeoutSeconds, config.consumerTimeoutSeconds);
}

async function loadAdapter(config: BrokerConfig, options: OpenBrokerOptions): Promise<Broker> {
  const { group = defaultGroup, queues = defaultQueues, placement = inDefaultQueue } = options;
  const common = { ...options, group, queues, placement };
  switch (config.kind) {
    case "dev": {
      const { createDevBroker } = await import("./dev/broker.ts");
      return createDevBroker({ ...options, host: config.host, port: config.port });
    }
    case "amqp": {
      const { createAmqpBroker } = await import("./amqp/broker.ts");
      const limits = Array.from(
        queues,
        ([queue, slots]) => [queue, slots + prefetchedCalls] as const,
      );
      return createAmqpBroker({ ...common, ...config, queues: new Map(limits) });
    }
    case "solace": {
      const { createSolaceBroker } = await import("./solace/broker.ts");
      return createSolaceBroker({ ...common, ...config });
    }
  }
}
