/**
 * A connection between two parts of the worker, with ends that are used like sockets.
 */
import type { Socket } from "node:net";
import { Duplex } from "node:stream";

type Done = (error?: Error | null) => void;

/** Both ends. The caller owns them; each ends with the other, by its error if it has one. */
export function localConnection(): readonly [near: Socket, far: Socket] {
  const [near, far] = [new End(), new End()];
  near.peer = far;
  far.peer = near;
  // Of a socket they have what worker/egress/ and node:http use.
  return [near, far] as unknown as readonly [Socket, Socket];
}

class End extends Duplex {
  peer: End | undefined;
  bytesRead = 0;
  bytesWritten = 0;
  /** Continues the writer of the peer. */
  #onTaken: Done | undefined;

  /** Whoever has the near end bounds the time. */
  setTimeout(): this {
    return this;
  }

  resetAndDestroy(): this {
    return this.destroy(new Error("the connection was reset"));
  }

  destroySoon(): void {
    this.end();
    if (this.writableFinished) this.destroy();
    else this.once("finish", () => this.destroy());
  }

  override _read(): void {
    this.#settle();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: Done): void {
    this.bytesWritten += chunk.byteLength;
    this.peer?.receive(chunk, done);
  }

  override _final(done: Done): void {
    this.peer?.push(null);
    done();
  }

  override _destroy(error: Error | null, done: Done): void {
    this.#settle(error ?? new Error("the connection is gone"));
    // What was written before the end is still read.
    if (error !== null || !this.writableFinished) this.peer?.destroy(error ?? undefined);
    done(error);
  }

  receive(chunk: Buffer, done: Done): void {
    if (this.destroyed) return done(new Error("the connection is gone"));
    this.bytesRead += chunk.byteLength;
    // Its memory may be used again once it is taken.
    if (this.push(Buffer.from(chunk))) done();
    else this.#onTaken = done;
  }

  #settle(error?: Error): void {
    const done = this.#onTaken;
    this.#onTaken = undefined;
    done?.(error);
  }
}
