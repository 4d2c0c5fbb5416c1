/**
 * Statuses in a stream of bytes: one to a line, `{"status": "…"}`.
 */
import { withoutDeceptive } from "../../support/text/deceptive.ts";
import { isJsonObject } from "../../support/json/json.ts";

/**
 * Bytes of one line; longer lines are dropped whole. POSIX writes up to this size atomically
 * (pipe(7), PIPE_BUF).
 */
export const maxLineBytes = 4096;
/** Bytes of `{"status":""}`: what is shorter is not worth a parser's exception. */
const minLineBytes = 13;

const newline = 0x0a;

/** Cuts a stream into lines and tells the text of each that is a status. */
export class StatusLines {
  readonly #onStatus: (text: string) => void;
  /** The beginning of a line whose end is still to come; a copy. */
  #partial: Buffer | undefined;
  #isTooLong = false;
  #dropped = 0;

  /** @param onStatus gets each text, without control characters */
  constructor(onStatus: (text: string) => void) {
    this.#onStatus = onStatus;
  }

  /** Lines so far that were too long or not a status. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Takes the next bytes; keeps nothing of the buffer. */
  push(chunk: Buffer): void {
    let start = 0;
    for (let end = chunk.indexOf(newline); end !== -1; end = chunk.indexOf(newline, start)) {
      this.#takeLine(this.#whole(chunk, start, end));
      this.#partial = undefined;
      this.#isTooLong = false;
      start = end + 1;
    }
    if (start === chunk.byteLength) return;
    const rest = this.#whole(chunk, start, chunk.byteLength);
    this.#isTooLong = rest === undefined;
    this.#partial = rest && Buffer.from(rest);
  }

  /** What came before and what comes now of a line; undefined when it is too long. */
  #whole(chunk: Buffer, start: number, end: number): Buffer | undefined {
    const length = (this.#partial?.byteLength ?? 0) + end - start;
    if (this.#isTooLong || length > maxLineBytes) return undefined;
    const part = chunk.subarray(start, end);
    return this.#partial ? Buffer.concat([this.#partial, part], length) : part;
  }

  #takeLine(line: Buffer | undefined): void {
    const text = line && readStatus(line);
    if (text === undefined) this.#dropped++;
    else this.#onStatus(text);
  }
}

/** The text of a line, or undefined when it is no status. */
function readStatus(line: Buffer): string | undefined {
  if (line.byteLength < minLineBytes) return undefined;
  let parsed: unknown;
  try {
    parsed = JSON.parse(line.toString("utf8"));
  } catch {
    return undefined;
  }
  if (!isJsonObject(parsed) || typeof parsed["status"] !== "string") return undefined;
  return withoutDeceptive(parsed["status"].toWellFormed());
}
