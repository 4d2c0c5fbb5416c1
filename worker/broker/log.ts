/**
 * The little that brokers need of a logger.
 */

/**
 * Where adapters tell an operator what happened; a pino logger fits. The name of the event is the
 * fact `event`.
 */
export interface BrokerLog {
  info(facts: object, message: string): void;
  warn(facts: object, message: string): void;
}

/**
 * What an error of the broker or the network says, for the log: where our code met it helps no
 * operator.
 */
export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
