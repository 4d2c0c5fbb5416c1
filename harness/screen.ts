/**
 * A stream that people read: lines, styles where the stream can show them, and text that cannot take over a terminal.
 */
import { once } from "node:events";
import { styleText } from "node:util";

/** Styles by name, as `util.styleText` knows them. */
export type Style = Parameters<typeof styleText>[0];

/** Standard output or standard error. */
export class Screen {
  readonly #stream: NodeJS.WriteStream;

  constructor(stream: NodeJS.WriteStream) {
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

  /** Resolves when the stream takes more; for those who write without end. */
  async ready(signal: AbortSignal): Promise<void> {
    if (this.#stream.writableNeedDrain) await once(this.#stream, "drain", { signal });
  }

  /** The text in a style, or as it is where the stream is no terminal or `NO_COLOR` is set. */
  paint(style: Style, text: string): string {
    return styleText(style, text, { stream: this.#stream });
  }
}

/**
 * Text of others with its control characters spelled out: a tool's message must not move the cursor, change colours or
 * reverse the reading direction of what stands beside it. Newlines and tabs stay; JSON stays the same JSON.
 */
export function printable(text: string): string {
  return text.replace(
    /[^\P{Cc}\n\t]|\p{Bidi_Control}/gu,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
