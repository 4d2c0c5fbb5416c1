/**
 * Checks the size of content on its way.
 */
import { type Readable, Transform, type TransformCallback, pipeline } from "node:stream";
import { notSaved } from "./failures.ts";
import type { ArtifactKey } from "./scope.ts";
import { StoreError } from "./store.ts";

/** A pipeline step that throws StoreError `unavailable` unless its chunks have `sizeBytes`. */
export function exactly(
  sizeBytes: number,
  key: ArtifactKey,
): (chunks: AsyncIterable<Uint8Array>) => AsyncGenerator<Uint8Array> {
  return async function* (chunks) {
    const arrived = new ArrivedBytes(sizeBytes, (reason) => notSaved(key, reason));
    for await (const chunk of chunks) {
      arrived.add(chunk);
      yield chunk;
    }
    arrived.end();
  };
}

/**
 * The content of `body`, which fails with StoreError `unavailable` unless it has `sizeBytes`.
 * Destroying either destroys the other.
 */
export function exactContent(body: Readable, sizeBytes: number): Readable {
  // The receiver of the content gets the error.
  return pipeline(body, new ExactContent(sizeBytes), () => undefined);
}

class ExactContent extends Transform {
  readonly #arrived: ArrivedBytes;

  constructor(sizeBytes: number) {
    super();
    this.#arrived = new ArrivedBytes(sizeBytes, (reason) => new StoreError("unavailable", reason));
  }

  override _transform(chunk: Buffer, _encoding: string, done: TransformCallback): void {
    try {
      this.#arrived.add(chunk);
      done(null, chunk);
    } catch (error) {
      done(error as Error);
    }
  }

  override _flush(done: TransformCallback): void {
    try {
      this.#arrived.end();
      done();
    } catch (error) {
      done(error as Error);
    }
  }
}

/** Counts bytes against an announced size. */
class ArrivedBytes {
  readonly #announced: number;
  readonly #failure: (reason: string) => StoreError;
  #bytes = 0;

  constructor(announced: number, failure: (reason: string) => StoreError) {
    this.#announced = announced;
    this.#failure = failure;
  }

  /** Throws before a byte too many is passed on. */
  add({ byteLength }: Uint8Array): void {
    this.#bytes += byteLength;
    if (this.#bytes <= this.#announced) return;
    throw this.#failure(`more than the announced ${this.#announced} bytes arrived`);
  }

  end(): void {
    if (this.#bytes === this.#announced) return;
    throw this.#failure(`${this.#bytes} of the announced ${this.#announced} bytes arrived`);
  }
}
