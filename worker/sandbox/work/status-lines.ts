/**
 * Parses statuses from a stream of bytes: one in each line, `{"status": "…"}` with its details.
 */
import {
  type StatusDetails,
  type StatusListener,
  readStatusDetails,
} from "../../protocol/messages/status-details.ts";
import { withoutDeceptive } from "../../support/text/deceptive.ts";
import { isJsonObject } from "../../support/json/json.ts";

/** Bytes of a line; longer ones are dropped. Such writes are atomic (PIPE_BUF, pipe(7)). */
export const maxLineBytes = 4096;
/** Bytes of `{"status":""}`: a shorter line saves the parser's exception. */
const minLineBytes = 13;

const newline = 0x0a;

/** Splits a stream into lines, and reports each status. */
export class StatusLines {
  readonly #onStatus: StatusListener;
  /** Copy of an unfinished line. */
  #partial: Buffer | undefined;
  #isTooLong = false;
  #dropped = 0;

  /** @param onStatus receives each status; its texts have no control characters */
  constructor(onStatus: StatusListener) {
    this.#onStatus = onStatus;
  }

  /** Number of dropped lines: too long, or no status. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Parses the next bytes; keeps no reference to the buffer. */
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

  /** The partial line with its continuation; undefined when too long. */
  #whole(chunk: Buffer, start: number, end: number): Buffer | undefined {
    const length = (this.#partial?.byteLength ?? 0) + end - start;
    if (this.#isTooLong || length > maxLineBytes) return undefined;
    const part = chunk.subarray(start, end);
    return this.#partial ? Buffer.concat([this.#partial, part], length) : part;
  }

  #takeLine(line: Buffer | undefined): void {
    const status = line && readStatus(line);
    if (status === undefined) this.#dropped++;
    else this.#onStatus(status.text, status.details);
  }
}

interface Status {
  readonly text: string;
  readonly details: StatusDetails | undefined;
}

/** The status in a line; undefined when it is none. */
function readStatus(line: Buffer): Status | undefined {
  if (line.byteLength < minLineBytes) return undefined;
  let parsed: unknown;
  try {
    parsed = JSON.parse(line.toString("utf8"));
  } catch {
    return undefined;
  }
  if (!isJsonObject(parsed) || typeof parsed["status"] !== "string") return undefined;
  const text = withoutDeceptive(parsed["status"].toWellFormed());
  return { text, details: readStatusDetails(parsed) };
}
