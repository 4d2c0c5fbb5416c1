/**
 * The little that brokers need of a logger.
 */

/** A pino logger fits. The fact `event` names the event. */
export interface BrokerLog {
  info(facts: object, message: string): void;
  warn(facts: object, message: string): void;
}

/** The message of an error, without the stack: it helps no operator. */
export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
