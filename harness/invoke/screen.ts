/**
 * A stream that people read: lines, styles where the stream can show them, and text that cannot
 * take over a terminal.
 */
import { once } from "node:events";
import type { Writable } from "node:stream";
import { styleText } from "node:util";
import type { Style } from "../../worker/telemetry/pretty-log.ts";

export { printable } from "../../worker/support/text/printable.ts";
export type { Style };

/** Standard output or standard error. */
export class Screen {
  readonly #stream: Writable;

  constructor(stream: Writable) {
    this.#stream = stream;
  }

  /** Writes a line. */
  line(text = ""): void {
    this.#stream.write(`${text}\n`);
  }

  /** Writes text as it is. */
  write(text: string): void {
    this.#stream.write(text);
  }

  /** Whether a line can be rewritten. */
  get isTerminal(): boolean {
    return "isTTY" in this.#stream && this.#stream.isTTY === true;
  }

  /** Writes a line of a terminal in place of the present one. */
  rewrite(text: string): void {
    this.#stream.write(`\r\u001b[K${text}`);
  }

  /** Writes bytes, as fast as they are read. Rejects with their error or the signal's reason. */
  async copy(chunks: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<void> {
    for await (const chunk of chunks) {
      signal.throwIfAborted();
      this.#stream.write(chunk);
      await this.ready(signal);
    }
  }

  /** Resolves when the stream takes more; for those who write without end. */
  async ready(signal: AbortSignal): Promise<void> {
    if (this.#stream.writableNeedDrain) await once(this.#stream, "drain", { signal });
  }

  /** The text in a style, or as it is where the stream is no terminal or `NO_COLOR` is set. */
  paint(style: Style, text: string): string {
    return styleText(style, text, { stream: this.#stream });
  }
}
