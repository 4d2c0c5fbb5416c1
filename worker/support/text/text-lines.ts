/**
 * Text that comes in pieces, line by line.
 */
import { StringDecoder } from "node:string_decoder";

/** Characters of a line that are handed on in one piece; a longer one comes in several. */
const maxLineCharacters = 8_192;

/** The lines of one stream of UTF-8. */
export class TextLines {
  readonly #decoder = new StringDecoder("utf8");
  #text = "";

  /** The lines that a chunk completes, and those that are too long to wait for. */
  take(chunk: Uint8Array): readonly string[] {
    const lines = (this.#text + this.#decoder.write(chunk)).split("\n");
    this.#text = lines.pop() ?? "";
    while (this.#text.length > maxLineCharacters) {
      lines.push(this.#text.slice(0, maxLineCharacters));
      this.#text = this.#text.slice(maxLineCharacters);
    }
    return lines.map((line) => line.replace(/\r$/, ""));
  }

  /** What has no newline after it; undefined when there is nothing. */
  rest(): string | undefined {
    const rest = this.#text + this.#decoder.end();
    this.#text = "";
    return rest === "" ? undefined : rest;
  }
}
