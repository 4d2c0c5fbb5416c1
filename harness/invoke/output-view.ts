/**
 * What a tool prints, line by line as it comes, and told apart from everything else.
 */
import { TextLines } from "../../worker/support/text/text-lines.ts";
import { type Screen, printable } from "./screen.ts";

/** Output streams of a command. */
export type StreamName = "stdout" | "stderr";

/** Shows two streams on one screen. Whoever feeds it calls `finish` after the last piece. */
export class OutputView {
  readonly #screen: Screen;
  readonly #indent: string;
  readonly #readable: (text: string) => string;
  readonly #streams: Readonly<Record<StreamName, TextLines>> = {
    stdout: new TextLines(),
    stderr: new TextLines(),
  };

  /**
   * @param readable makes a line of standard error easier to follow; as it is unless given
   * @param indent before each line
   */
  constructor(screen: Screen, readable = (text: string): string => text, indent = "") {
    this.#screen = screen;
    this.#indent = indent;
    this.#readable = readable;
  }

  take(name: StreamName, chunk: Uint8Array): void {
    for (const line of this.#streams[name].take(chunk)) this.#show(name, line);
  }

  /** Shows what has no newline after it. */
  finish(): void {
    for (const name of ["stdout", "stderr"] as const) {
      const rest = this.#streams[name].rest();
      if (rest !== undefined) this.#show(name, rest);
    }
  }

  #show(name: StreamName, line: string): void {
    const text = name === "stderr" ? this.#readable(line) : line;
    const origin = this.#screen.paint("dim", `${name}:`);
    this.#screen.line(`${this.#indent}${origin} ${printable(text)}`);
  }
}
