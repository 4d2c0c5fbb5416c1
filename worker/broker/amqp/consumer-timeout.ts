/**
 * Which tools run too long for the broker.
 */

/**
 * Why a tool with this time limit must not be served, or undefined when it may. RabbitMQ closes the channel of a worker that
 * has not settled a call within the consumer timeout, and hands the call to another worker while the first still runs it.
 */
export function consumerTimeoutProblem(
  timeoutSeconds: number,
  consumerTimeoutSeconds: number,
): string | undefined {
  if (timeoutSeconds <= consumerTimeoutSeconds) return undefined;
  return (
    `may run for ${timeoutSeconds} seconds, but RabbitMQ hands a call to another worker after ` +
    `${consumerTimeoutSeconds}: lower its timeout_seconds, or raise consumer_timeout of the broker and ` +
    "AMQP_CONSUMER_TIMEOUT_SECONDS of every worker alike"
  );
}
