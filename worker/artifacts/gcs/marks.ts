/**
 * Marks as objects, beside the scopes of a bucket: `.str-claims/{name}`. The stamp of a mark is its
 * generation, under which it is changed.
 */
import { randomUUID } from "node:crypto";
import { buffer } from "node:stream/consumers";
import type { Mark, MarkStore } from "../marks.ts";
import { isOfSave, saveMetadata } from "../objects/saves.ts";
import { marksLevel } from "../scope.ts";
import { type GcsBucket, generationOf } from "./bucket.ts";
import { Checksum } from "./checksum.ts";
import { guardedRequest, isConditionFailed, unlessMissing } from "./failures.ts";
import { listPages } from "./listing.ts";

const failed = "A mark of the call could not be kept in the artifact store";

const prefix = `${marksLevel}/`;

/** Marks of a bucket. */
export class GcsMarks implements MarkStore {
  readonly #bucket: GcsBucket;

  constructor(bucket: GcsBucket) {
    this.#bucket = bucket;
  }

  create(name: string, content: Uint8Array, signal: AbortSignal): Promise<boolean> {
    return guardedRequest(failed, signal, async () => {
      const save = randomUUID();
      if (await this.#write(name, Buffer.from(content), "0", save, signal)) return true;
      // A request that was repeated may find its own mark.
      const found = await unlessMissing(() => this.#bucket.get(prefix + name, signal));
      return found !== undefined && isOfSave(found.data.metadata, save);
    });
  }

  async note(name: string, signal: AbortSignal): Promise<void> {
    await this.create(name, new Uint8Array(), signal);
  }

  read(name: string, signal: AbortSignal): Promise<Mark | undefined> {
    return guardedRequest(failed, signal, () =>
      unlessMissing(async () => {
        const { data, headers } = await this.#bucket.get(prefix + name, signal);
        const generation = generationOf(data);
        const at = { generation, offset: 0 };
        const isEmpty = Number(data.size) === 0;
        return {
          content: isEmpty
            ? new Uint8Array()
            : await buffer(await this.#bucket.read(prefix + name, at, signal)),
          stamp: generation,
          ageMs: Date.parse(headers.get("date") ?? "") - Date.parse(data.updated ?? ""),
        };
      }),
    );
  }

  async touch(name: string, signal: AbortSignal): Promise<void> {
    await guardedRequest(failed, signal, () =>
      unlessMissing(async () => {
        const { data } = await this.#bucket.get(prefix + name, signal);
        // Another worker that changed it since has renewed or removed it.
        await this.#write(name, Buffer.alloc(0), generationOf(data), randomUUID(), signal);
      }),
    );
  }

  async remove(name: string, signal: AbortSignal): Promise<void> {
    await guardedRequest(failed, signal, () =>
      unlessMissing(() => this.#bucket.delete(prefix + name, signal)),
    );
  }

  sweep(maxAgeMs: (name: string) => number, signal: AbortSignal): Promise<void> {
    return guardedRequest(failed, signal, async () => {
      const fields = ["name", "generation", "updated"] as const;
      const tooLong = (): Error => new Error("there are too many marks");
      const listing = { bucket: this.#bucket, prefix, fields, tooLong };
      for await (const { objects, nowMs } of listPages(listing, signal)) {
        for (const object of objects) {
          const { name = "", updated = "" } = object;
          if (nowMs - Date.parse(updated) <= maxAgeMs(name.slice(prefix.length))) continue;
          await this.#deleteUnchanged(name, generationOf(object), signal);
        }
      }
    });
  }

  /** Whether it was written, in place of this generation. */
  async #write(
    name: string,
    content: Buffer,
    replaces: string,
    save: string,
    signal: AbortSignal,
  ): Promise<boolean> {
    const metadata = saveMetadata(save);
    const contentType = "application/octet-stream";
    const object = { name: prefix + name, contentType, metadata, replaces };
    const checksum = new Checksum();
    checksum.update(content);
    try {
      await this.#bucket.insert(object, content, checksum.value, signal);
      return true;
    } catch (error) {
      if (isConditionFailed(error)) return false;
      throw error;
    }
  }

  async #deleteUnchanged(name: string, generation: string, signal: AbortSignal): Promise<void> {
    try {
      await unlessMissing(() => this.#bucket.delete(name, signal, generation));
    } catch (error) {
      // Another worker renewed it.
      if (!isConditionFailed(error)) throw error;
    }
  }
}
