/**
 * Reads the status lines that a tool writes into its named pipe.
 *
 * The pipe is a stream of bytes from inside the sandbox: whatever is in it, at most `maxLineBytes`
 * of one line are kept, reading is slowed when the tool floods, and a line is identified by the
 * pipe it came through, never by its content.
 */
import { close, constants, open, readSync } from "node:fs";
import { Socket } from "node:net";
import { promisify } from "node:util";
import { ReadThrottle } from "./read-throttle.ts";
import { StatusLines } from "./status-lines.ts";

/**
 * Bytes read in one go before the tool has to wait, so that a flood costs the tool's time and not
 * the worker's.
 */
const maxBytesPerTurn = 16 * 1024;
/**
 * Milliseconds the tool waits then, at least; and those between the turns of two tools, however
 * many flood at once.
 */
const floodPause = { leastMs: 12, betweenMs: 4 };

/** What the tools of this process wait for who flood: they all hold up one event loop. */
const throttle = new ReadThrottle(floodPause);

/** Where every pipe is read into: what is in it is taken in the same turn. */
const sharedChunk = Buffer.alloc(maxBytesPerTurn);

const openDescriptor = promisify(open);
const closeDescriptor = promisify(close);

/** The reading side of a status pipe. Disposing it closes the pipe. */
export interface StatusChannel extends Disposable {
  /** Lines so far that were too long or not a status. */
  readonly droppedLines: number;
  /**
   * Bounds what is read in all, whatever it is. Beyond, nothing more is, the tool waits for a
   * reader, and `onExceeded` is told once, with the bytes that were read. It must not throw. To be
   * called before anything can be read.
   */
  bound(maxBytes: number, onExceeded: (readBytes: number) => void): void;
  /** Reads what is left in the pipe. To be called when no process that could write is alive. */
  finish(): void;
}

/** A pipe that nobody reads yet. Disposing it closes it. */
export class StatusPipe implements Disposable {
  readonly #descriptor: number;
  /**
   * Owns the descriptor. A socket polls the pipe; fs would hold a pool thread in a read that never
   * ends.
   */
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
    // It would begin to read in the next turn.
    this.#socket.pause();
    this.#socket.on("error", () => this.#socket.destroy());
  }

  /**
   * Opens a pipe that no tool has touched yet; the caller owns it. It is for reading and writing:
   * with a read-only end the reading would finish at the first writer's close, and the next writer
   * would wait for ever (fifo(7)). Rejects with the system's error, also for what is no pipe.
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
   * Starts to read; `onStatus` gets each text, cleaned of control characters. May be called once.
   * The caller owns the channel, and the pipe goes with it.
   */
  read(onStatus: (text: string) => void): StatusChannel {
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

  constructor(descriptor: number, socket: Socket, onStatus: (text: string) => void) {
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

  /** Takes what was read; the bytes are another pipe's afterwards. */
  take(chunk: Buffer): void {
    if (this.#isExceeded) return;
    this.#count(chunk);
    this.#bytesThisTurn += chunk.byteLength;
    if (this.#bytesThisTurn < maxBytesPerTurn && !this.#isExceeded) return;
    this.#bytesThisTurn = 0;
    this.#socket.pause();
    if (!this.#isExceeded) {
      this.#floodPause = setTimeout(() => this.#socket.resume(), throttle.pauseMs(performance.now()));
    }
  }

  finish(): void {
    if (this.#socket.destroyed) return;
    this.#socket.pause();
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

  /** Takes of a chunk what is within the bound. */
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
