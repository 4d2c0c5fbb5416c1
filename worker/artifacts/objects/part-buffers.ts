/**
 * Bounds the memory of a store's saves: each part of an object has a buffer while it is sent.
 */
import { Semaphore } from "../../support/semaphore.ts";

/** Bounds on buffers. */
export interface PartBuffersOptions {
  /** Of one content. */
  readonly maxOfContent: number;
  /** Of all contents together, but for small ones. */
  readonly max: number;
  /** Bytes of a small content: large ones do not keep it waiting. */
  readonly smallBytes: number;
}

/** The buffers of a store's saves. */
export class PartBuffers {
  readonly #maxOfContent: number;
  readonly #smallBytes: number;
  /** A save waits for its first buffer only, so that each with a buffer can end. */
  readonly #permits: Semaphore;

  constructor({ maxOfContent, max, smallBytes }: PartBuffersOptions) {
    this.#maxOfContent = maxOfContent;
    this.#smallBytes = smallBytes;
    this.#permits = new Semaphore({ capacity: max, maxWaiting: Infinity });
  }

  /** Waits for the first buffer of a content. The caller disposes the result. */
  async open(bytes: number, signal: AbortSignal): Promise<ContentBuffers> {
    const isSmall = bytes <= this.#smallBytes;
    const permits = isSmall ? [] : [await this.#permits.acquire(signal)];
    const another = (): boolean => {
      const hasAll = isSmall || permits.length >= this.#maxOfContent;
      const permit = hasAll ? undefined : this.#permits.tryAcquire();
      if (permit !== undefined) permits.push(permit);
      return permit !== undefined;
    };
    const free: Buffer[] = [Buffer.allocUnsafeSlow(bytes)];
    return {
      take: () => free.pop() ?? (another() ? Buffer.allocUnsafeSlow(bytes) : undefined),
      giveBack: (buffer) => void free.push(buffer),
      [Symbol.dispose]: () => {
        for (const permit of permits) permit[Symbol.dispose]();
      },
    };
  }
}

/** The buffers of one content. */
export interface ContentBuffers extends Disposable {
  /** A buffer to fill; undefined while the content can have no more. */
  take(): Buffer | undefined;
  giveBack(buffer: Buffer): void;
}
