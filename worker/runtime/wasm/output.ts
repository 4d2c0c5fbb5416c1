/**
 * What a program prints: written by its thread into memory that the backend reads at any time, also
 * after it has ended the thread. So a flood of output is no flood of messages.
 */
import { maxStreamBytes } from "./limits.ts";

export type Stream = "stdout" | "stderr";

const streams: readonly Stream[] = ["stdout", "stderr"];
/** Two numbers for each stream: its kept bytes, and whether there were more. */
const headBytes = streams.length * 2 * Int32Array.BYTES_PER_ELEMENT;
const cutMark = "…";
const roomBytes = maxStreamBytes - Buffer.byteLength(cutMark);

/** Bytes of the memory. */
export const outputSize = headBytes + streams.length * maxStreamBytes;

/** The beginning of each stream. */
export class Output {
  readonly #head: Int32Array;
  readonly #bytes: Uint8Array;

  constructor(memory: SharedArrayBuffer) {
    this.#head = new Int32Array(memory, 0, streams.length * 2);
    this.#bytes = new Uint8Array(memory, headBytes);
  }

  clear(): void {
    this.#head.fill(0);
  }

  write(stream: Stream, text: string): void {
    const index = streams.indexOf(stream);
    if (Atomics.load(this.#head, 2 * index + 1) === 1) return;
    const keptBytes = Atomics.load(this.#head, 2 * index);
    const start = index * maxStreamBytes;
    const room = this.#bytes.subarray(start + keptBytes, start + roomBytes);
    const { read, written } = new TextEncoder().encodeInto(text, room);
    Atomics.store(this.#head, 2 * index, keptBytes + written);
    if (read < text.length) Atomics.store(this.#head, 2 * index + 1, 1);
  }

  text(stream: Stream): string {
    const index = streams.indexOf(stream);
    const start = index * maxStreamBytes;
    const bytes = this.#bytes.slice(start, start + Atomics.load(this.#head, 2 * index));
    const isCut = Atomics.load(this.#head, 2 * index + 1) === 1;
    return `${Buffer.from(bytes).toString("utf8")}${isCut ? cutMark : ""}`;
  }
}
