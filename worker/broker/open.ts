/**
 * From configuration to a broker: loads only the adapter that is asked for.
 */
import type { Clock } from "../support/clock.ts";
import type { BrokerLog } from "./log.ts";
import { type ReconnectingBroker, reconnecting } from "./reconnecting.ts";

/** First bound of the delay between connection attempts; `connectRetryDelayMs` is the last. */
const firstRetryDelayMs = 100;

/** Which broker, where, and how patiently. */
export type BrokerConfig = {
  readonly kind: "dev";
  readonly host: string;
  readonly port: number;
  /** Attempts per outage; 0 tries for ever. */
  readonly connectRetries: number;
  /** Milliseconds between attempts at most; the first ones follow each other faster. */
  readonly connectRetryDelayMs: number;
};

/** What every adapter needs beside its own configuration. */
export interface OpenBrokerOptions {
  readonly namespace: string;
  readonly workerId: string;
  readonly log: BrokerLog;
  readonly clock?: Clock;
  /** Told whenever the connection comes or goes, for readiness. */
  readonly onStateChange?: (connected: boolean) => void;
}

/** Makes the broker that `config` describes, with reconnection. Nothing is opened before its `connect`. */
export async function openBroker(
  config: BrokerConfig,
  options: OpenBrokerOptions,
): Promise<ReconnectingBroker> {
  const { createDevBroker } = await import("./dev/broker.ts");
  const broker = createDevBroker({ ...options, host: config.host, port: config.port });
  return reconnecting(broker, {
    ...options,
    maxAttempts: config.connectRetries,
    backoff: { baseMs: firstRetryDelayMs, capMs: config.connectRetryDelayMs },
  });
}
