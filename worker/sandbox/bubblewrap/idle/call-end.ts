/**
 * How a call ends by its wake channel: tool-runner/PROTOCOL.md, "Parked". The command gives its
 * result, and says later that nothing of it is left but its exit.
 */
import type { Duplex } from "node:stream";

/** Line before the document of a result: its length. */
const resultLine = /^\{"result":(\d{1,9})\}$/;

/** Line of a command that only its exit with 0 is left to. */
const doneLine = '{"done":true}\n';

/** Bytes of either line. */
const maxLineBytes = 64;

const newline = 0x0a;

/** What a command said of its call. The tool's code may have written it. */
export class CallEnd {
  /** The document, once all of it is there. */
  result: Buffer | undefined;
  /** Fulfils after `result` is there, when the command is done; stays pending otherwise. */
  readonly done: Promise<void>;
  readonly #stream: Duplex;
  readonly #maxResultBytes: number;
  readonly #isDone = Promise.withResolvers<void>();
  #held: Buffer[] = [];
  #heldBytes = 0;
  /** Of the document; undefined before its line is there. */
  #resultBytes: number | undefined;

  /** @param stream the channel, paused. What is read of it belongs to this. */
  constructor(stream: Duplex, maxResultBytes: number) {
    this.#stream = stream;
    this.#maxResultBytes = maxResultBytes;
    this.done = this.#isDone.promise;
    stream.on("data", this.#take).resume();
  }

  readonly #take = (chunk: Buffer): void => {
    this.#held.push(chunk);
    this.#heldBytes += chunk.byteLength;
    if (this.#heldBytes < (this.#resultBytes ?? 0)) return;
    let rest = this.#held.length === 1 ? chunk : Buffer.concat(this.#held);
    if (this.result === undefined) {
      if (this.#resultBytes === undefined) {
        const end = rest.indexOf(newline);
        if (end === -1 && rest.byteLength < maxLineBytes) return;
        const [, digits] = resultLine.exec(rest.toString("latin1", 0, Math.max(end, 0))) ?? [];
        if (digits === undefined || Number(digits) > this.#maxResultBytes) return this.#refuse();
        this.#resultBytes = Number(digits);
        rest = rest.subarray(end + 1);
      }
      this.#hold(rest);
      if (rest.byteLength < this.#resultBytes) return;
      this.result = rest.subarray(0, this.#resultBytes);
      rest = rest.subarray(this.#resultBytes);
      this.#resultBytes = 0;
    }
    this.#hold(rest);
    const said = rest.toString("latin1");
    if (!doneLine.startsWith(said)) return this.#refuse();
    if (said !== doneLine) return;
    this.#stream.off("data", this.#take).pause();
    this.#isDone.resolve();
  };

  #hold(rest: Buffer): void {
    this.#held = [rest];
    this.#heldBytes = rest.byteLength;
  }

  /** Whoever said that is not heard any more. An honest runner answers by a file, and exits. */
  #refuse(): void {
    this.#stream.off("data", this.#take).destroy();
    this.#hold(Buffer.alloc(0));
  }
}
