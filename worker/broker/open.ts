/**
 * From configuration to a broker: loads only the adapter that is asked for.
 */
import { defaultGroup, defaultQueue } from "../protocol/queue-names.ts";
import type { Clock } from "../support/clock.ts";
import { parseAmqpUrl } from "./amqp/address.ts";
import { type AmqpConfig, consumerTimeoutProblem, maxRunSeconds } from "./amqp/config.ts";
import type { Broker, ToolPlacement } from "./broker.ts";
import type { DevConfig } from "./dev/config.ts";
import type { BrokerLog } from "./log.ts";
import { type ReconnectingBroker, reconnecting } from "./reconnecting.ts";
import { isEncrypted, parseSolaceHosts } from "./solace/address.ts";
import type { SolaceConfig } from "./solace/config.ts";

/** First bound of the delay between attempts; `connectRetryDelayMs` is the last. */
const firstRetryDelayMs = 100;

/** Prefetched calls beyond the slots of a queue of RabbitMQ; Solace's library does so itself. */
const prefetchedCalls = 1;

const defaultQueues: ReadonlyMap<string, number> = new Map([[defaultQueue, 4]]);

const inDefaultQueue: ToolPlacement = { queueOf: () => defaultQueue, foreignTools: () => [] };

export interface ConnectPatience {
  /** Attempts per outage; 0 tries for ever. */
  readonly connectRetries: number;
  /** Milliseconds between attempts at most; the first ones follow each other faster. */
  readonly connectRetryDelayMs: number;
}

export interface DevBrokerConfig extends ConnectPatience, DevConfig {
  readonly kind: "dev";
}

export interface AmqpBrokerConfig extends ConnectPatience, AmqpConfig {
  readonly kind: "amqp";
}

export interface SolaceBrokerConfig extends ConnectPatience, SolaceConfig {
  readonly kind: "solace";
}

export type BrokerConfig = DevBrokerConfig | AmqpBrokerConfig | SolaceBrokerConfig;

export interface OpenBrokerOptions {
  readonly namespace: string;
  readonly workerId: string;
  readonly log: BrokerLog;
  readonly clock?: Clock;
  /** `default` unless given. */
  readonly group?: string;
  /** Consumed queues of the group, with the slots of each; the default queue with 4 by default. */
  readonly queues?: ReadonlyMap<string, number>;
  /** All tools in the default queue unless given. */
  readonly placement?: ToolPlacement;
  /** Called whenever the connection comes or goes, for readiness. */
  readonly onStateChange?: (connected: boolean) => void;
}

/** A broker with reconnection. Opens nothing before `connect`. */
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

export function isAmqpUrl(text: string): boolean {
  return parseAmqpUrl(text) !== undefined;
}

/** Whether a text names a Solace broker, or several hosts of one. */
export function isSolaceHost(text: string): boolean {
  return parseSolaceHosts(text) !== undefined;
}

/** Whether all hosts of a text are reached over TLS. */
export function isEncryptedSolaceHost(text: string): boolean {
  return isEncrypted(parseSolaceHosts(text) ?? []);
}

/** Seconds that a call may run at most; Infinity where the broker has no limit. */
export function maxCallSeconds(config: BrokerConfig): number {
  return config.kind === "amqp" ? maxRunSeconds(config.consumerTimeoutSeconds) : Infinity;
}

/** Why a tool with this time limit must not be served, or undefined when it may. */
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
