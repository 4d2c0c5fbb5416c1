/**
 * Reads the status lines that a tool writes into its named pipe.
 *
 * The pipe is a stream of bytes from inside the sandbox: whatever is in it, at most `maxLineBytes` of one line are kept,
 * reading is slowed when the tool floods, and a line is identified by the pipe it came through, never by its content.
 */
import { close, constants, open, readSync } from "node:fs";
import { Socket } from "node:net";
import { promisify } from "node:util";
import { isJsonObject } from "../../support/json.ts";

/** Bytes of one line; longer lines are dropped whole. POSIX writes up to this size atomically (pipe(7), PIPE_BUF). */
export const maxLineBytes = 4096;
/** Bytes read in one go before the tool has to wait, so that a flood costs the tool's time and not the worker's. */
const maxBytesPerTurn = 64 * 1024;
/** Milliseconds the tool waits then. */
const floodPauseMs = 50;
/** Bytes of `{"status":""}`: what is shorter is not worth a parser's exception. */
const minLineBytes = 13;

const newline = 0x0a;

const openDescriptor = promisify(open);
const closeDescriptor = promisify(close);

/** The reading side of a status pipe. Disposing it closes the pipe. */
export interface StatusChannel extends Disposable {
  /** Lines so far that were too long or not a status. */
  readonly droppedLines: number;
  /**
   * Bounds what is read in all, whatever it is. Beyond, nothing more is, the tool waits for a reader, and `onExceeded` is told
   * once, with the bytes that were read. It must not throw. To be called before anything can be read.
   */
  bound(maxBytes: number, onExceeded: (readBytes: number) => void): void;
  /** Reads what is left in the pipe. To be called when no process that could write is alive. */
  finish(): void;
}

/** A pipe that nobody reads yet. Disposing it closes it. */
export class StatusPipe implements Disposable {
  readonly #descriptor: number;
  /** Owns the descriptor. A socket polls the pipe; fs would hold a pool thread in a read that never ends. */
  readonly #socket: Socket;

  private constructor(descriptor: number, socket: Socket) {
    this.#descriptor = descriptor;
    this.#socket = socket;
  }

  /**
   * Opens a pipe that no tool has touched yet; the caller owns it. It is for reading and writing: with a read-only end the
   * reading would finish at the first writer's close, and the next writer would wait for ever (fifo(7)). Rejects with the
   * system's error, also for what is no pipe.
   */
  static async open(path: string): Promise<StatusPipe> {
    const flags = constants.O_RDWR | constants.O_NONBLOCK | constants.O_NOFOLLOW;
    const descriptor = await openDescriptor(path, flags, 0);
    try {
      const socket = new Socket({ fd: descriptor, readable: true, writable: false });
      socket.on("error", () => socket.destroy());
      return new StatusPipe(descriptor, socket);
    } catch (error) {
      await closeDescriptor(descriptor);
      throw error;
    }
  }

  /**
   * Starts to read; `onStatus` gets each text, cleaned of control characters. May be called once. The caller owns the channel,
   * and the pipe goes with it.
   */
  read(onStatus: (text: string) => void): StatusChannel {
    return new PipeStatusChannel(this.#descriptor, this.#socket, onStatus);
  }

  [Symbol.dispose](): void {
    this.#socket.destroy();
  }
}

class PipeStatusChannel implements StatusChannel {
  readonly #descriptor: number;
  readonly #socket: Socket;
  readonly #lines: LineSplitter;
  #bytesThisTurn = 0;
  #readBytes = 0;
  #maxBytes = Infinity;
  #onExceeded: (readBytes: number) => void = () => undefined;
  #floodPause: NodeJS.Timeout | undefined;
  droppedLines = 0;

  constructor(descriptor: number, socket: Socket, onStatus: (text: string) => void) {
    this.#descriptor = descriptor;
    this.#socket = socket;
    this.#lines = new LineSplitter((line) => {
      const text = line === undefined ? undefined : readStatus(line);
      if (text === undefined) this.droppedLines++;
      else onStatus(text);
    });
    this.#socket.on("data", (chunk: Buffer) => this.#take(chunk));
  }

  bound(maxBytes: number, onExceeded: (readBytes: number) => void): void {
    this.#maxBytes = maxBytes;
    this.#onExceeded = onExceeded;
  }

  finish(): void {
    if (this.#socket.destroyed) return;
    this.#socket.pause();
    // What the socket holds back comes as a last "data".
    this.#socket.read();
    // No writer is left, so this reads at most one pipe's capacity.
    const chunk = Buffer.allocUnsafe(maxBytesPerTurn);
    while (!this.#isExceeded) {
      const bytesRead = readAvailable(this.#descriptor, chunk);
      if (bytesRead === 0) return;
      this.#count(chunk.subarray(0, bytesRead));
    }
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#floodPause);
    this.#socket.destroy();
  }

  get #isExceeded(): boolean {
    return this.#readBytes > this.#maxBytes;
  }

  #take(chunk: Buffer): void {
    if (this.#isExceeded) return;
    this.#count(chunk);
    this.#bytesThisTurn += chunk.byteLength;
    if (this.#bytesThisTurn < maxBytesPerTurn && !this.#isExceeded) return;
    this.#bytesThisTurn = 0;
    this.#socket.pause();
    if (!this.#isExceeded) this.#floodPause = setTimeout(() => this.#socket.resume(), floodPauseMs);
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

/** The text of a `{"status": "…"}` line, or undefined when the line is not one. */
function readStatus(line: Buffer): string | undefined {
  if (line.byteLength < minLineBytes) return undefined;
  let parsed: unknown;
  try {
    parsed = JSON.parse(line.toString("utf8"));
  } catch {
    return undefined;
  }
  if (!isJsonObject(parsed) || typeof parsed["status"] !== "string") return undefined;
  return cleanText(parsed["status"]);
}

/** Without control, line and bidirectional-override characters, which could forge a terminal's or a log's lines. */
function cleanText(text: string): string {
  return text
    .toWellFormed()
    .replace(/[\p{Cc}\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, " ");
}

/** Cuts a stream into lines; a line beyond `maxLineBytes` is reported as undefined. */
class LineSplitter {
  readonly #onLine: (line: Buffer | undefined) => void;
  #partial: Buffer = Buffer.alloc(0);
  #isTooLong = false;

  constructor(onLine: (line: Buffer | undefined) => void) {
    this.#onLine = onLine;
  }

  push(chunk: Buffer): void {
    let rest = chunk;
    for (let end = rest.indexOf(newline); end !== -1; end = rest.indexOf(newline)) {
      this.#append(rest.subarray(0, end));
      this.#onLine(this.#isTooLong ? undefined : this.#partial);
      this.#partial = Buffer.alloc(0);
      this.#isTooLong = false;
      rest = rest.subarray(end + 1);
    }
    this.#append(rest);
  }

  #append(part: Buffer): void {
    if (this.#partial.byteLength + part.byteLength > maxLineBytes) {
      this.#isTooLong = true;
      this.#partial = Buffer.alloc(0);
    } else {
      this.#partial = Buffer.concat([this.#partial, part]);
    }
  }
}
