/**
 * The little that the broker room needs of a logger.
 */

/** Where adapters tell an operator what happened; a pino logger fits. */
export interface BrokerLog {
  info(facts: object, event: string): void;
  warn(facts: object, event: string): void;
}
