/**
 * Answers on their way to a program, which may read none of them. Of all that wait at most
 * `maxUnsentBytes` are in memory, the others in files, where there is a directory for them.
 */
import { randomUUID } from "node:crypto";
import { type FileHandle, open, rm } from "node:fs/promises";
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
  readonly #directory: string | undefined;
  /** Who writes. Those that wait have a permit of the host each. */
  readonly #turns = new Semaphore({ capacity: 1, maxWaiting: Infinity });
  #inMemoryBytes = 0;

  /** @param directory for the files, which have no name there */
  constructor(channel: Duplex, directory: string | undefined) {
    this.#channel = channel;
    this.#directory = directory;
  }

  /** Keeps a line, which the caller drops. Writing it ends with the signal. */
  async keep(line: Buffer, signal: AbortSignal): Promise<KeptAnswer> {
    const hasRoom = this.#inMemoryBytes + line.byteLength <= maxUnsentBytes;
    if (this.#directory === undefined || hasRoom) return this.#inMemory(line);
    try {
      return await inFile(join(this.#directory, `answer-${randomUUID()}`), line, signal);
    } catch {
      // Such as on a full disk: no call starts then, so there will be no more of them.
      return this.#inMemory(line);
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
}

/** The file has no name when this returns. Rejects with the system's error, or on abort. */
async function inFile(path: string, line: Buffer, signal: AbortSignal): Promise<KeptAnswer> {
  const file = await open(path, "wx+", 0o600);
  // What an error of closing would mean for its content interests nobody any more.
  const end = (): Promise<void> => file.close().catch(() => undefined);
  try {
    await rm(path);
    await file.writeFile(line, { signal });
    return { pieces: piecesOf(file), [Symbol.asyncDispose]: end };
  } catch (error) {
    await end();
    throw error;
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
