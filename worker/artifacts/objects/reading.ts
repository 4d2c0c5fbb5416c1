/**
 * Reads an object to its end: a connection that is cut is followed by another one from there on,
 * which the SDKs do not do.
 */
import { Readable, addAbortSignal } from "node:stream";
import { StoreError } from "../store.ts";
import { reasons } from "./reasons.ts";

/** Cuts in a row without a byte between them. */
const maxCuts = 5;

/** An object to read. */
export interface ReadObject {
  readonly sizeBytes: number;
  /** Begins the error's message. */
  readonly doing: string;
  /** The content from its first byte on, if a response has come already. */
  readonly first?: Readable;
  /** The content of the same object from a byte on. Rejects with errors for `reasonOf`. */
  rest(offset: number, signal: AbortSignal): Promise<Readable>;
  /** Takes the chunks in their order. */
  update(chunk: Uint8Array): void;
  /** Whether the chunks are not those of the object. */
  isDamaged(): boolean;
  reasonOf(error: unknown): string;
}

/** The whole content. Errors are StoreError `unavailable`. */
export function readToEnd(object: ReadObject): Readable {
  return new ObjectContent(object);
}

/** Destroying it ends the request that it waits for, which a stream of a generator would not. */
class ObjectContent extends Readable {
  readonly #closing = new AbortController();
  readonly #chunks: AsyncGenerator<Uint8Array>;

  constructor(object: ReadObject) {
    super();
    const { signal } = this.#closing;
    const first = object.first && endedBy(signal, object.first);
    this.#chunks = chunksOf(object, first, signal);
  }

  override _read(): void {
    this.#chunks.next().then(
      ({ done, value }) => this.push(done ? null : value),
      (error: unknown) => this.destroy(error as Error),
    );
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this.#closing.abort();
    callback(error);
  }
}

async function* chunksOf(
  object: ReadObject,
  first: Readable | undefined,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, undefined> {
  const { sizeBytes, doing, reasonOf } = object;
  let [offset, cuts] = [0, 0];
  let body = first ?? (await restOf(object, 0, signal));
  for (;;) {
    let cut: unknown;
    try {
      for await (const chunk of body as AsyncIterable<Uint8Array>) {
        offset += chunk.byteLength;
        cuts = 0;
        object.update(chunk);
        yield chunk;
      }
    } catch (error) {
      cut = error;
    } finally {
      body.destroy();
    }
    if (offset >= sizeBytes) {
      if (object.isDamaged()) throw failed(doing, reasons.damaged, cut);
      if (cut !== undefined) throw failed(doing, reasonOf(cut), cut);
      return undefined;
    }
    if (++cuts > maxCuts) throw failed(doing, "the connection is cut again and again", cut);
    body = await restOf(object, offset, signal);
  }
}

async function restOf(object: ReadObject, offset: number, signal: AbortSignal): Promise<Readable> {
  try {
    return endedBy(signal, await object.rest(offset, signal));
  } catch (error) {
    throw failed(object.doing, object.reasonOf(error), error);
  }
}

/** The signal destroys it. */
function endedBy(signal: AbortSignal, body: Readable): Readable {
  // A reader still gets the error; without a reader it must not be unhandled.
  return addAbortSignal(
    signal,
    body.on("error", () => undefined),
  );
}

function failed(doing: string, reason: string, cause?: unknown): StoreError {
  return new StoreError("unavailable", `${doing}: ${reason}.`, { cause });
}
