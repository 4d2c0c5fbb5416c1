/**
 * How far a run of attacks is, in one line of a terminal that is written over and gone in the end.
 */
import { type AttackRow, attackVerdicts, isFailure } from "./attacks/attack-report.ts";

/** Where a program talks to people: `process.stderr`. */
export interface Screen {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

/** Columns of a terminal that does not say how many it has. */
const usualColumns = 80;
const clearLine = "\u001b[2K";

/**
 * Counts what is done. It says nothing where nobody watches: on a screen that is no terminal, such
 * as a log.
 */
export class AttackProgress implements Disposable {
  readonly #screen: Screen;
  #total: number;
  #done = 0;
  #failed = 0;

  /** @param total rows that there will be, as far as is known */
  constructor(screen: Screen, total: number) {
    this.#screen = screen;
    this.#total = total;
    this.#show("making everything ready");
  }

  /** More is known of how many rows there will be. */
  plan(total: number): void {
    this.#total = total;
  }

  /** Takes a row that has come. */
  add(row: AttackRow): void {
    this.#done++;
    if (isFailure(row)) this.#failed++;
    this.#show(`${attackVerdicts[row.verdict]}: ${row.id} under ${row.profile}, ${row.start}`);
  }

  [Symbol.dispose](): void {
    this.#write("");
  }

  #show(last: string): void {
    const failed = this.#failed === 0 ? "" : `, ${this.#failed} FAILED`;
    this.#write(`${this.#done} of ${this.#total} attacks${failed}; ${last}`);
  }

  /**
   * The cursor stays at the beginning, so that a line of the log covers this one. A line that is
   * too long would not go.
   */
  #write(text: string): void {
    const { isTTY, columns = 0 } = this.#screen;
    const width = columns > 0 ? columns : usualColumns;
    if (isTTY === true) this.#screen.write(`${clearLine}${text.slice(0, width - 1)}\r`);
  }
}
