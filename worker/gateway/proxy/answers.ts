/**
 * Answers on their way to a program, which may read none of them. Of all that wait at most
 * `maxUnsentBytes` are in memory, the others in files.
 */
import { randomUUID } from "node:crypto";
import { type FileHandle, open, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { Semaphore } from "../../support/semaphore.ts";
import { maxUnsentBytes, sentBelow } from "./frames.ts";

/** Bytes of a file that are read at a time. */
const pieceBytes = 256 * 1024;

/** An answer that is not sent yet. Its owner disposes it. */
export interface KeptAnswer extends AsyncDisposable {
  /** Its bytes, to be taken once. */
  readonly pieces: Iterable<Buffer> | AsyncIterable<Buffer>;
}

/** Keeps the answers of a channel, and writes one after the other. */
export class Answers {
  readonly #channel: Duplex;
  readonly #directory: string;
  /** Who writes. Those that wait have a permit of the host each. */
  readonly #turns = new Semaphore({ capacity: 1, maxWaiting: Infinity });
  #inMemoryBytes = 0;

  /** @param directory for the files, which have no name there; the system's by default */
  constructor(channel: Duplex, directory: string = tmpdir()) {
    this.#channel = channel;
    this.#directory = directory;
  }

  /**
   * Keeps a line; the caller drops it.
   *
   * @param instead a short line in its place, where there is no room for it
   */
  async keep(line: Buffer, instead: (cause: unknown) => Buffer): Promise<KeptAnswer> {
    if (this.#inMemoryBytes + line.byteLength <= maxUnsentBytes) return this.#inMemory(line);
    try {
      return await this.#inFile(line);
    } catch (error) {
      return this.#inMemory(instead(error));
    }
  }

  /**
   * Sends an answer but for `maxUnsentBytes`. Rejects with the signal's reason, or with an error of
   * the system.
   *
   * @param onTurn called before the first byte
   */
  async send({ pieces }: KeptAnswer, onTurn: () => void, signal: AbortSignal): Promise<void> {
    using _turn = await this.#turns.acquire(signal);
    onTurn();
    for await (const piece of pieces) {
      if (!this.#channel.destroyed) this.#channel.write(piece);
      await sentBelow(maxUnsentBytes, this.#channel, signal);
    }
  }

  #inMemory(line: Buffer): KeptAnswer {
    const { byteLength } = line;
    this.#inMemoryBytes += byteLength;
    return {
      pieces: [line],
      [Symbol.asyncDispose]: async () => void (this.#inMemoryBytes -= byteLength),
    };
  }

  async #inFile(line: Buffer): Promise<KeptAnswer> {
    const path = join(this.#directory, `answer-${randomUUID()}`);
    const file = await open(path, "wx+", 0o600);
    try {
      await rm(path);
      await file.writeFile(line);
    } catch (error) {
      await file.close();
      throw error;
    }
    return { pieces: piecesOf(file), [Symbol.asyncDispose]: () => file.close() };
  }
}

async function* piecesOf(file: FileHandle): AsyncGenerator<Buffer, void, undefined> {
  for (let position = 0; ;) {
    // A new one each: the channel keeps what it has not sent.
    const piece = Buffer.allocUnsafeSlow(pieceBytes);
    const { bytesRead } = await file.read(piece, 0, pieceBytes, position);
    if (bytesRead === 0) return;
    position += bytesRead;
    yield piece.subarray(0, bytesRead);
  }
}
