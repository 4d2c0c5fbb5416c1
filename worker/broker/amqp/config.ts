/**
 * What an operator says of a RabbitMQ broker.
 */

/** Files in PEM form, read anew for every connection. */
export interface AmqpTlsFiles {
  /**
   * Certificates that the broker's is checked against; undefined for those that Node brings along.
   */
  readonly caFile: string | undefined;
  /**
   * The worker's own certificate; with it and no user in the URL, the broker tells by it who the
   * worker is.
   */
  readonly certFile: string | undefined;
  readonly keyFile: string | undefined;
  readonly keyPassphrase: string | undefined;
}

/** Where the broker is and how its queues are made. */
export interface AmqpConfig {
  /** `amqp://user:password@host:port/vhost`, or `amqps`. */
  readonly url: string;
  readonly tls: AmqpTlsFiles;
  /** Name of the topic exchange; undefined for the namespace. */
  readonly exchange: string | undefined;
  /** How often the broker hands a call out before it puts it aside. */
  readonly maxDeliveries: number;
  /** How long the broker waits for the settlement of a call before it takes the worker for dead. */
  readonly consumerTimeoutSeconds: number;
}
