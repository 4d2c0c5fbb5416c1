/**
 * Reads the status lines that a tool writes into its named pipe.
 *
 * The bytes are untrusted: the channel keeps at most `maxLineBytes` of a line, throttles a flood,
 * and identifies a line by its pipe, never by its content.
 */
import { close, constants, open, readSync } from "node:fs";
import { Socket } from "node:net";
import { promisify } from "node:util";
import type { StatusListener } from "../../protocol/messages/status-details.ts";
import { ReadThrottle } from "./read-throttle.ts";
import { StatusLines } from "./status-lines.ts";

/** Bytes of one read; then the tool waits, so that a flood costs its own time. */
const maxBytesPerTurn = 16 * 1024;
/** Least pause of a flooding tool, and least time between the reads of two tools. */
const floodPause = { leastMs: 12, betweenMs: 4 };

/** Shared by all tools of this process: they load one event loop. */
const throttle = new ReadThrottle(floodPause);

/** Buffer of all pipes: each chunk is parsed in the turn of its read. */
const sharedChunk = Buffer.alloc(maxBytesPerTurn);

const openDescriptor = promisify(open);
const closeDescriptor = promisify(close);

/** The reading end of a status pipe. Disposing closes the pipe. */
export interface StatusChannel extends Disposable {
  /** Number of dropped lines: too long, or no status. */
  readonly droppedLines: number;
  /**
   * Bounds the bytes of all reads. Beyond, reading stops, and `onExceeded` receives the number of
   * read bytes once. It must not throw. Call before the first read.
   */
  bound(maxBytes: number, onExceeded: (readBytes: number) => void): void;
  /**
   * Reads the rest of the pipe. Call when no writer is alive.
   *
   * @param hadTurn whether the event loop has read since all was written that counts
   */
  finish(hadTurn?: boolean): void;
}

/** An open pipe without a reader. Disposing closes it. */
export class StatusPipe implements Disposable {
  readonly #descriptor: number;
  /** Owns the descriptor. A socket polls; fs would block a thread of the pool. */
  readonly #socket: Socket;
  #onChunk: (chunk: Buffer) => void = () => undefined;

  private constructor(descriptor: number) {
    this.#descriptor = descriptor;
    const callback = (bytes: number, chunk: Uint8Array): boolean => {
      this.#onChunk(chunk.subarray(0, bytes) as Buffer);
      return true;
    };
    const onread = { buffer: sharedChunk, callback };
    this.#socket = new Socket({ fd: descriptor, readable: true, writable: false, onread });
    // Otherwise it reads in the next turn of the event loop.
    this.#socket.pause();
    this.#socket.on("error", () => this.#socket.destroy());
  }

  /**
   * Opens a pipe before the tool runs; the caller owns it. It is open for reading and writing, so
   * that a writer's close is no end of file (fifo(7)). Rejects with the system's error.
   */
  static async open(path: string): Promise<StatusPipe> {
    const flags = constants.O_RDWR | constants.O_NONBLOCK | constants.O_NOFOLLOW;
    const descriptor = await openDescriptor(path, flags, 0);
    try {
      return new StatusPipe(descriptor);
    } catch (error) {
      await closeDescriptor(descriptor);
      throw error;
    }
  }

  /**
   * Starts reading; `onStatus` receives each status, without control characters. Call once. The
   * caller owns the channel, and with it the pipe.
   */
  read(onStatus: StatusListener): StatusChannel {
    const channel = new PipeStatusChannel(this.#descriptor, this.#socket, onStatus);
    this.#onChunk = (chunk) => channel.take(chunk);
    this.#socket.resume();
    return channel;
  }

  [Symbol.dispose](): void {
    this.#socket.destroy();
  }
}

class PipeStatusChannel implements StatusChannel {
  readonly #descriptor: number;
  readonly #socket: Socket;
  readonly #lines: StatusLines;
  #bytesThisTurn = 0;
  #readBytes = 0;
  #maxBytes = Infinity;
  #onExceeded: (readBytes: number) => void = () => undefined;
  #floodPause: NodeJS.Timeout | undefined;

  constructor(descriptor: number, socket: Socket, onStatus: StatusListener) {
    this.#descriptor = descriptor;
    this.#socket = socket;
    this.#lines = new StatusLines(onStatus);
  }

  get droppedLines(): number {
    return this.#lines.dropped;
  }

  bound(maxBytes: number, onExceeded: (readBytes: number) => void): void {
    this.#maxBytes = maxBytes;
    this.#onExceeded = onExceeded;
  }

  /** Parses a chunk; another pipe overwrites it afterwards. */
  take(chunk: Buffer): void {
    if (this.#isExceeded) return;
    this.#count(chunk);
    this.#bytesThisTurn += chunk.byteLength;
    if (this.#bytesThisTurn < maxBytesPerTurn && !this.#isExceeded) return;
    this.#bytesThisTurn = 0;
    this.#socket.pause();
    if (!this.#isExceeded) {
      this.#floodPause = setTimeout(
        () => this.#socket.resume(),
        throttle.pauseMs(performance.now()),
      );
    }
  }

  finish(hadTurn = false): void {
    if (this.#socket.destroyed) return;
    // One that was slowed down reads again only after the turn in which its pause ends.
    const isRead = hadTurn && this.#floodPause === undefined;
    this.#socket.pause();
    // A read that finds nothing makes an error, which takes longer than the read.
    if (isRead) return;
    // No writer is left, so this reads at most one pipe's capacity.
    while (!this.#isExceeded) {
      const bytesRead = readAvailable(this.#descriptor, sharedChunk);
      if (bytesRead === 0) return;
      this.#count(sharedChunk.subarray(0, bytesRead));
    }
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#floodPause);
    this.#socket.destroy();
  }

  get #isExceeded(): boolean {
    return this.#readBytes > this.#maxBytes;
  }

  /** Parses the bytes within the bound. */
  #count(chunk: Buffer): void {
    const leftBytes = this.#maxBytes - this.#readBytes;
    this.#readBytes += chunk.byteLength;
    this.#lines.push(this.#isExceeded ? chunk.subarray(0, leftBytes) : chunk);
    if (this.#isExceeded) this.#onExceeded(this.#readBytes);
  }
}

/** Reads without waiting; 0 when the pipe is empty. */
function readAvailable(descriptor: number, chunk: Buffer): number {
  try {
    return readSync(descriptor, chunk, 0, chunk.byteLength, null);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EAGAIN") return 0;
    throw error;
  }
}
