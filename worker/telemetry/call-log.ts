/**
 * The log of one call.
 */
import type { Logger } from "./logger.ts";

/**
 * Has the lines of a logger with more facts. A child of pino that redacts takes a tenth of a
 * millisecond after a pause, so it is made for the first line that is written: at `warn`, most
 * calls write none.
 */
export class CallLog implements Logger {
  readonly #parent: Logger;
  readonly #facts: object;
  #child: Logger | undefined;

  constructor(parent: Logger, facts: object) {
    this.#parent = parent;
    this.#facts = facts;
  }

  get level(): string {
    return this.#parent.level;
  }

  isLevelEnabled(level: string): boolean {
    return this.#parent.isLevelEnabled(level);
  }

  child(facts: object, options?: { readonly level: string }): Logger {
    return this.#logger.child(facts, options);
  }

  debug(facts: object, message: string): void {
    if (this.isLevelEnabled("debug")) this.#logger.debug(facts, message);
  }

  info(facts: object, message: string): void {
    if (this.isLevelEnabled("info")) this.#logger.info(facts, message);
  }

  warn(facts: object, message: string): void {
    if (this.isLevelEnabled("warn")) this.#logger.warn(facts, message);
  }

  error(facts: object, message: string): void {
    if (this.isLevelEnabled("error")) this.#logger.error(facts, message);
  }

  fatal(facts: object, message: string): void {
    if (this.isLevelEnabled("fatal")) this.#logger.fatal(facts, message);
  }

  get #logger(): Logger {
    return (this.#child ??= this.#parent.child(this.#facts));
  }
}
