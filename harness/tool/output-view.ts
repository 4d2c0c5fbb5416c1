/**
 * What a tool prints, line by line as it comes, and told apart from everything else.
 */
import { StringDecoder } from "node:string_decoder";
import type { OutputListener } from "../../worker/sandbox/sandbox.ts";
import { type Screen, printable } from "../screen.ts";

/** Characters of a line that are shown in one piece; a longer one is shown in several. */
const maxLineCharacters = 8_192;

type StreamName = Parameters<OutputListener>[0];

/** Shows two streams on one screen. Whoever feeds it calls `finish` after the last piece. */
export class OutputView {
  readonly #screen: Screen;
  readonly #streams: Readonly<Record<StreamName, OpenLine>> = {
    stdout: new OpenLine(),
    stderr: new OpenLine(),
  };

  constructor(screen: Screen) {
    this.#screen = screen;
  }

  take(name: StreamName, chunk: Uint8Array): void {
    for (const line of this.#streams[name].take(chunk)) this.#show(name, line);
  }

  /** Shows what has no newline after it. */
  finish(): void {
    for (const name of ["stdout", "stderr"] as const) {
      const rest = this.#streams[name].rest();
      if (rest !== "") this.#show(name, rest);
    }
  }

  #show(name: StreamName, line: string): void {
    this.#screen.line(`${this.#screen.paint("dim", `${name}:`)} ${printable(line)}`);
  }
}

/** A line that is not at its end yet. */
class OpenLine {
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

  rest(): string {
    const rest = this.#text + this.#decoder.end();
    this.#text = "";
    return rest;
  }
}
