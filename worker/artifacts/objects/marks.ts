/**
 * Marks as objects, beside the scopes of a bucket: `.str-claims/{name}`.
 *
 * The body is a number of its own and then the content: where an ETag is one of the content alone,
 * each write of a mark still has another one. That is its stamp, and the condition under which it
 * is changed.
 */
import { randomUUID } from "node:crypto";
import { guarded } from "../failures.ts";
import type { Mark, MarkStore } from "../marks.ts";
import { marksLevel } from "../scope.ts";
import type { Condition, ObjectBucket } from "./bucket.ts";
import { listPages } from "./listing.ts";
import { isOfSave, saveMetadata } from "./metadata.ts";

const failed = "A mark of the call could not be kept in the artifact store";

/** What workers keep for each other begins so. */
export const marksPrefix = `${marksLevel}/`;

/** Bytes of the number before the content. */
const numberBytes = randomUUID().length;

/** Attempts at a mark that others write at the same time. */
const maxAttempts = 10;

/** Marks of a bucket that keeps conditions. */
export class ObjectMarks implements MarkStore {
  readonly #bucket: ObjectBucket;

  constructor(bucket: ObjectBucket) {
    this.#bucket = bucket;
  }

  create(name: string, content: Uint8Array, signal: AbortSignal): Promise<boolean> {
    return this.#guarded(signal, async () => {
      const save = randomUUID();
      if (await this.#write(name, content, save, "absent", signal)) return true;
      // A request that was repeated may find its own mark.
      const found = await this.#bucket.head(marksPrefix + name, signal);
      return isOfSave(found?.metadata, save);
    });
  }

  async note(name: string, signal: AbortSignal): Promise<void> {
    await this.create(name, new Uint8Array(), signal);
  }

  read(name: string, signal: AbortSignal): Promise<Mark | undefined> {
    return this.#guarded(signal, async () => {
      const found = await this.#bucket.read(marksPrefix + name, signal);
      if (found === undefined) return undefined;
      const { content, etag: stamp, ageMs } = found;
      return { content: content.subarray(numberBytes), stamp, ageMs };
    });
  }

  async touch(name: string, signal: AbortSignal): Promise<void> {
    await this.#guarded(signal, async () => {
      const found = await this.#bucket.head(marksPrefix + name, signal);
      if (found === undefined) return;
      // Another worker that changed it since has renewed or removed it.
      await this.#write(name, new Uint8Array(), randomUUID(), { etag: found.etag }, signal);
    });
  }

  async remove(name: string, signal: AbortSignal): Promise<void> {
    await this.#guarded(signal, () => this.#bucket.delete(marksPrefix + name, undefined, signal));
  }

  sweep(maxAgeMs: (name: string) => number, signal: AbortSignal): Promise<void> {
    return this.#guarded(signal, async () => {
      const listing = { prefix: marksPrefix, isDeep: true };
      const tooLong = (): Error => new Error("there are too many marks");
      for await (const { objects } of listPages(this.#bucket, listing, tooLong, signal)) {
        for (const { key, etag, ageMs } of objects) {
          if (!(ageMs > maxAgeMs(key.slice(marksPrefix.length)))) continue;
          // Unless another worker was faster, or renewed it.
          await this.#bucket.delete(key, etag, signal);
        }
      }
    });
  }

  /** Whether it was written; false where the condition does not hold. */
  async #write(
    name: string,
    content: Uint8Array,
    save: string,
    condition: Condition,
    signal: AbortSignal,
  ): Promise<boolean> {
    const contentType = "application/octet-stream";
    const object = { key: marksPrefix + name, contentType, metadata: saveMetadata(save) };
    const body = Buffer.concat([Buffer.from(save), content]);
    for (let attempt = 1; ; attempt++) {
      try {
        await this.#bucket.write(object, body, condition, signal);
        return true;
      } catch (error) {
        const meaning = this.#bucket.meaningOf(error);
        if (meaning === "condition failed") return false;
        if (meaning !== "conflict" || attempt === maxAttempts) throw error;
      }
    }
  }

  #guarded<T>(signal: AbortSignal, operation: () => Promise<T>): Promise<T> {
    return guarded(failed, signal, operation, (error) => this.#bucket.reasonOf(error));
  }
}
