/**
 * The little that brokers need of a logger.
 */

/** A pino logger fits. The fact `event` names the event. */
export interface BrokerLog {
  info(facts: object, message: string): void;
  warn(facts: object, message: string): void;
}

/** The network's or the system's code for an error, such as `ECONNREFUSED`. */
export function codeOf(error: unknown): string | undefined {
  const isCoded = error instanceof Error && "code" in error && typeof error.code === "string";
  return isCoded ? (error.code as string) : undefined;
}

/** The message of an error, without the stack: it helps no operator. */
export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
