/**
 * A gateway's channel inside a connection that carries other messages, too.
 *
 * The connection is never paused, since pings and answers have to come through. So each peer sends
 * no more than a window of bytes that the other has not taken.
 */
import { Duplex } from "node:stream";
import { maxChunkBytes, messageBytes, windowBytes } from "./limits.ts";

/** Taken bytes from which on the peer hears of them. */
const reportedBytes = windowBytes / 4;

/** What a channel sends. */
export interface ChannelSender {
  chunk(bytes: Buffer): void;
  /** Tells the peer that so much of its window is free again. */
  taken(bytes: number): void;
}

/** The connection owns it. */
export class GatewayChannel extends Duplex {
  readonly #sender: ChannelSender;
  readonly #arrived: Buffer[] = [];
  /** Of the window, what the peer uses. */
  #arrivedBytes = 0;
  #unreportedBytes = 0;
  #isHungry = false;
  /** Of the window, what is free for us. */
  #freeBytes = windowBytes;
  #unsent: Buffer = Buffer.alloc(0);
  #onSent: (() => void) | undefined;

  constructor(sender: ChannelSender) {
    super({ allowHalfOpen: false });
    this.#sender = sender;
  }

  /** A message of the peer. False: the peer does not keep to the window. */
  receive(chunk: Buffer): boolean {
    this.#arrivedBytes += costOf(chunk);
    if (chunk.byteLength > maxChunkBytes || this.#arrivedBytes > windowBytes) return false;
    // The reader has left.
    if (this.destroyed) return true;
    this.#arrived.push(chunk);
    if (this.#isHungry) this._read();
    return true;
  }

  /** The peer has taken so much. False: it never got that. */
  grant(bytes: number): boolean {
    this.#freeBytes += bytes;
    if (this.#freeBytes > windowBytes) return false;
    this.#send();
    return true;
  }

  override _read(): void {
    const chunk = this.#arrived.shift();
    this.#isHungry = chunk === undefined;
    if (chunk === undefined) return;
    this.#take(costOf(chunk));
    this.push(chunk);
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#unsent = chunk;
    this.#onSent = done;
    this.#send();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#arrived.length = 0;
    this.#unsent = Buffer.alloc(0);
    this.#onSent = undefined;
    done(error);
  }

  #take(bytes: number): void {
    this.#unreportedBytes += bytes;
    if (this.#unreportedBytes < reportedBytes) return;
    this.#arrivedBytes -= this.#unreportedBytes;
    this.#sender.taken(this.#unreportedBytes);
    this.#unreportedBytes = 0;
  }

  #send(): void {
    while (this.#unsent.byteLength > 0) {
      const chunk = this.#unsent.subarray(0, maxChunkBytes);
      if (costOf(chunk) > this.#freeBytes) return;
      this.#freeBytes -= costOf(chunk);
      this.#unsent = this.#unsent.subarray(chunk.byteLength);
      this.#sender.chunk(chunk);
    }
    const onSent = this.#onSent;
    this.#onSent = undefined;
    onSent?.();
  }
}

function costOf({ byteLength }: Buffer): number {
  return byteLength + messageBytes;
}
