/**
 * How long tools may run for the broker.
 */

/**
 * Seconds beside waiting and running: for the start of the sandbox, inputs and outputs, and
 * publishing the answer.
 */
export const settlementMarginSeconds = 120;

/**
 * Seconds that a call may run at most, whatever it asks for. See {@link consumerTimeoutProblem}.
 */
export function maxRunSeconds(consumerTimeoutSeconds: number): number {
  return Math.floor((consumerTimeoutSeconds - settlementMarginSeconds) / 2);
}

/**
 * Why a tool with this time limit must not be served, or undefined when it may. RabbitMQ takes a
 * call back that was not settled within the consumer timeout, before 4.3 with all others of its
 * channel, and hands it to another worker while the first still runs it. A call that is fetched
 * ahead waits for its slot no longer than it may run, so twice the limit counts.
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
