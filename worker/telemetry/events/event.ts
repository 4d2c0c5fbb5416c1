/**
 * The form of an event in the catalogue of the log.
 */

/** Levels that events have. */
export type EventLevel = "debug" | "info" | "warn" | "error" | "fatal";

/** Types of facts by their names in the catalogue. */
export interface FactTypes {
  readonly text: string;
  readonly number: number;
  readonly boolean: boolean;
  readonly limit: number | "unlimited";
  readonly list: readonly unknown[];
  readonly object: object;
  readonly error: unknown;
}

/** The type of a fact; with `?` a line may lack the fact. */
export type FactKind = keyof FactTypes | `${keyof FactTypes}?`;

/** An event of the log, which is a row of the table in docs/events.md. */
export interface LogEvent {
  readonly level: EventLevel;
  /** The sentence for people. */
  readonly message: string;
  /** Facts of a line beside those of its logger. */
  readonly facts: Readonly<Record<string, FactKind>>;
  /** When it is logged and what its facts mean, in Markdown. */
  readonly when: string;
  /** What the operator does, in Markdown; absent if nothing is to be done. */
  readonly action?: string;
}
