/**
 * The little that the broker room needs of a logger.
 */

/** Where adapters tell an operator what happened; a pino logger fits. */
export interface BrokerLog {
  info(facts: object, event: string): void;
  warn(facts: object, event: string): void;
}

/** An error of the broker or the network for the log: where our code met it helps no operator. */
export function withoutStack(error: unknown): { readonly type: string; readonly message: string } {
  if (error instanceof Error) return { type: error.name, message: error.message };
  return { type: typeof error, message: String(error) };
}
