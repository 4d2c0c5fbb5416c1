/**
 * What an operator says of a RabbitMQ broker, and how long tools may run for it.
 */

/** Files in PEM form, read anew for every connection. */
export interface AmqpTlsFiles {
  /** Undefined for the certificate authorities of Node. */
  readonly caFile: string | undefined;
  /** The worker's own certificate; it is the login where the URL names no user. */
  readonly certFile: string | undefined;
  readonly keyFile: string | undefined;
  readonly keyPassphrase: string | undefined;
}

export interface AmqpConfig {
  /** `amqp://user:password@host:port/vhost`, or `amqps`. */
  readonly url: string;
  readonly tls: AmqpTlsFiles;
  /** Name of the topic exchange; undefined for the namespace. */
  readonly exchange: string | undefined;
  /** Deliveries of a call before the broker dead-letters it. */
  readonly maxDeliveries: number;
  /** Seconds that a call may be unsettled before the broker requeues it. */
  readonly consumerTimeoutSeconds: number;
}

/** Seconds beside waiting and running: sandbox start, inputs, outputs and the answer. */
const settlementMarginSeconds = 120;

export function maxRunSeconds(consumerTimeoutSeconds: number): number {
  return Math.floor((consumerTimeoutSeconds - settlementMarginSeconds) / 2);
}

/**
 * Why a tool with this time limit must not be served, or undefined when it may. Past its consumer
 * timeout RabbitMQ hands a running call to another worker. A prefetched call waits for its slot as
 * long as it may run, so twice the limit counts.
 */
export function consumerTimeoutProblem(
  timeoutSeconds: number,
  consumerTimeoutSeconds: number,
): string | undefined {
  if (timeoutSeconds <= maxRunSeconds(consumerTimeoutSeconds)) return undefined;
  const neededSeconds = 2 * timeoutSeconds + settlementMarginSeconds;
  return (
    `may run for ${timeoutSeconds} seconds and wait as long before, which with ${settlementMarginSeconds} for the rest is ` +
    `more than the ${consumerTimeoutSeconds} after which RabbitMQ hands a call to another worker: lower its ` +
    `timeout_seconds, or raise consumer_timeout of the broker and AMQP_CONSUMER_TIMEOUT_SECONDS of every worker ` +
    `alike to ${neededSeconds}`
  );
}
