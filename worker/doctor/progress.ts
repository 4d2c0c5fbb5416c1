/**
 * Shows the progress of a run in one line of the terminal, which is removed at the end.
 */
import { type AttackRow, attackVerdicts, isFailure } from "./attacks/attack-report.ts";

/** The screen of a person: `process.stderr`. */
export interface Screen {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

/** Columns of a terminal that does not report them. */
const usualColumns = 80;
const clearLine = "\u001b[2K";

/** Counts rows. Writes only to terminals, not to logs. */
export class AttackProgress implements Disposable {
  readonly #screen: Screen;
  #total: number;
  #done = 0;
  #failed = 0;

  /** @param total estimated number of rows */
  constructor(screen: Screen, total: number) {
    this.#screen = screen;
    this.#total = total;
    this.#show("making everything ready");
  }

  /** Updates the number of rows. */
  plan(total: number): void {
    this.#total = total;
  }

  /** Counts a row. */
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

  /** The cursor stays at the start, so that a line of the log covers this one. */
  #write(text: string): void {
    const { isTTY, columns = 0 } = this.#screen;
    const width = columns > 0 ? columns : usualColumns;
    if (isTTY === true) this.#screen.write(`${clearLine}${text.slice(0, width - 1)}\r`);
  }
}
