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
  readonly #held = new Gathered();
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
    this.#held.add(chunk);
    if (this.#resultBytes === undefined && !this.#takeLine()) return;
    if (this.result === undefined && !this.#takeResult(this.#resultBytes ?? 0)) return;
    const said = this.#held.bytes.toString("latin1");
    if (!doneLine.startsWith(said)) return this.#refuse();
    if (said !== doneLine) return;
    this.#stream.off("data", this.#take).pause();
    this.#isDone.resolve();
  };

  #takeLine(): boolean {
    const { bytes } = this.#held;
    const end = bytes.indexOf(newline);
    if (end === -1 && bytes.byteLength < maxLineBytes) return false;
    const [, digits] = resultLine.exec(bytes.toString("latin1", 0, Math.max(end, 0))) ?? [];
    if (digits === undefined || Number(digits) > this.#maxResultBytes) {
      this.#refuse();
      return false;
    }
    this.#resultBytes = Number(digits);
    this.#held.drop(end + 1);
    return true;
  }

  #takeResult(sizeBytes: number): boolean {
    const { bytes } = this.#held;
    if (bytes.byteLength < sizeBytes) return false;
    this.result = bytes.subarray(0, sizeBytes);
    this.#held.drop(sizeBytes);
    return true;
  }

  /** Whoever said that is not heard any more. An honest runner answers by a file, and exits. */
  #refuse(): void {
    this.#stream.off("data", this.#take).destroy();
    this.#held.drop(this.#held.bytes.byteLength);
  }
}

/** Bytes in at most twice their memory, also where they come one by one. */
class Gathered {
  #buffer: Buffer = Buffer.alloc(0);
  #length = 0;

  get bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }

  add(chunk: Buffer): void {
    const length = this.#length + chunk.byteLength;
    if (this.#length === 0) this.#buffer = chunk;
    else {
      if (length > this.#buffer.byteLength) this.#grow(2 * length);
      chunk.copy(this.#buffer, this.#length);
    }
    this.#length = length;
  }

  /** What was given out of these bytes stays as it is. */
  drop(count: number): void {
    this.#buffer = this.#buffer.subarray(count, this.#length);
    this.#length -= count;
  }

  #grow(capacity: number): void {
    const larger = Buffer.allocUnsafe(capacity);
    this.bytes.copy(larger);
    this.#buffer = larger;
  }
}
