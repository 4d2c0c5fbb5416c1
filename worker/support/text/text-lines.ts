/**
 * Splits a stream of text into lines.
 */
import { StringDecoder } from "node:string_decoder";

/** Largest characters of one piece; longer lines are split. */
const maxLineCharacters = 8_192;

/** The lines of a stream of UTF-8. */
export class TextLines {
  readonly #decoder = new StringDecoder("utf8");
  #text = "";

  /** The lines that a chunk completes, and pieces of long lines. */
  take(chunk: Uint8Array): readonly string[] {
    const lines = (this.#text + this.#decoder.write(chunk)).split("\n");
    this.#text = lines.pop() ?? "";
    while (this.#text.length > maxLineCharacters) {
      lines.push(this.#text.slice(0, maxLineCharacters));
      this.#text = this.#text.slice(maxLineCharacters);
    }
    return lines.map((line) => line.replace(/\r$/, ""));
  }

  /** The rest without a newline; undefined when empty. */
  rest(): string | undefined {
    const rest = this.#text + this.#decoder.end();
    this.#text = "";
    return rest === "" ? undefined : rest;
  }
}
