/**
 * What the catalogue says of an event of the log.
 */

/** Levels that events have. */
export type EventLevel = "debug" | "info" | "warn" | "error" | "fatal";

/** An event of the log, which is a row of the table in docs/operate.md. */
export interface LogEvent {
  readonly level: EventLevel;
  /** The sentence for people. */
  readonly message: string;
  /** Facts that a line of it may have. */
  readonly fields: readonly string[];
  /** When it is logged and what its facts say, in Markdown. */
  readonly meaning: string;
}
