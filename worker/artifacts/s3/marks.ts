/**
 * Marks as objects, beside the scopes of a bucket: `.str-claims/{name}`.
 *
 * The body is a number of its own and then the content, so that each write of a mark has another
 * ETag: that is its stamp, and the condition under which it is changed.
 */
import { randomUUID } from "node:crypto";
import {
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  type S3Client,
} from "@aws-sdk/client-s3";
import type { Mark, MarkStore } from "../marks.ts";
import { isOfSave, saveMetadata } from "../objects/saves.ts";
import { marksLevel } from "../scope.ts";
import { serverTimeOf } from "./client.ts";
import {
  guardedRequest,
  isConditionFailed,
  isConflict,
  isMissing,
  unlessMissing,
} from "./failures.ts";

const failed = "A mark of the call could not be kept in the artifact store";

const prefix = `${marksLevel}/`;

/** Bytes of the number before the content. */
const numberBytes = randomUUID().length;

/** Attempts at a mark that others write at the same time. */
const maxAttempts = 10;

/** Marks of a bucket. The owner keeps the client. */
export class S3Marks implements MarkStore {
  readonly #client: S3Client;
  readonly #bucket: string;

  constructor(client: S3Client, bucket: string) {
    this.#client = client;
    this.#bucket = bucket;
  }

  create(name: string, content: Uint8Array, signal: AbortSignal): Promise<boolean> {
    return guardedRequest(failed, signal, () => this.#create(name, content, signal));
  }

  async note(name: string, signal: AbortSignal): Promise<void> {
    await this.create(name, new Uint8Array(), signal);
  }

  read(name: string, signal: AbortSignal): Promise<Mark | undefined> {
    return guardedRequest(failed, signal, () =>
      unlessMissing(async () => {
        const get = new GetObjectCommand(this.#at(name));
        const output = await this.#client.send(get, { abortSignal: signal });
        const body = await output.Body?.transformToByteArray();
        const changedMs = output.LastModified?.getTime() ?? 0;
        return {
          content: body?.subarray(numberBytes) ?? new Uint8Array(),
          stamp: output.ETag ?? "",
          ageMs: serverTimeOf(output) - changedMs,
        };
      }),
    );
  }

  async touch(name: string, signal: AbortSignal): Promise<void> {
    await guardedRequest(failed, signal, () =>
      unlessMissing(async () => {
        const head = new HeadObjectCommand(this.#at(name));
        const { ETag } = await this.#client.send(head, { abortSignal: signal });
        const put = new PutObjectCommand({ ...this.#at(name), Body: randomUUID(), IfMatch: ETag });
        await this.#client.send(put, { abortSignal: signal }).catch((error: unknown) => {
          // Who changed it at the same time has renewed or removed it.
          if (!isConditionFailed(error) && !isConflict(error)) throw error;
        });
      }),
    );
  }

  remove(name: string, signal: AbortSignal): Promise<void> {
    return guardedRequest(failed, signal, async () => {
      await this.#client.send(new DeleteObjectCommand(this.#at(name)), { abortSignal: signal });
    });
  }

  sweep(maxAgeMs: (name: string) => number, signal: AbortSignal): Promise<void> {
    return guardedRequest(failed, signal, async () => {
      const Bucket = this.#bucket;
      let StartAfter = prefix;
      for (;;) {
        const list = new ListObjectsV2Command({ Bucket, Prefix: prefix, StartAfter });
        const output = await this.#client.send(list, { abortSignal: signal });
        const nowMs = serverTimeOf(output);
        for (const { Key = "", LastModified, ETag } of output.Contents ?? []) {
          StartAfter = Key;
          const ageMs = nowMs - (LastModified?.getTime() ?? nowMs);
          if (ageMs <= maxAgeMs(Key.slice(prefix.length))) continue;
          const remove = new DeleteObjectCommand({ Bucket, Key, IfMatch: ETag });
          // Another worker was faster, or renewed it.
          await this.#client.send(remove, { abortSignal: signal }).catch((error: unknown) => {
            if (!isConditionFailed(error) && !isMissing(error)) throw error;
          });
        }
        if (output.IsTruncated !== true) return;
      }
    });
  }

  async #create(name: string, content: Uint8Array, signal: AbortSignal): Promise<boolean> {
    const save = randomUUID();
    const Body = Buffer.concat([Buffer.from(save), content]);
    const at = this.#at(name);
    const put = new PutObjectCommand({
      ...at,
      ...{ Body, IfNoneMatch: "*", Metadata: saveMetadata(save) },
    });
    for (let attempt = 1; ; attempt++) {
      try {
        await this.#client.send(put, { abortSignal: signal });
        return true;
      } catch (error) {
        if (isConflict(error) && attempt < maxAttempts) continue;
        if (!isConditionFailed(error)) throw error;
        // A request that was repeated may find its own mark.
        const head = await unlessMissing(() =>
          this.#client.send(new HeadObjectCommand(at), { abortSignal: signal }),
        );
        return head !== undefined && isOfSave(head.Metadata, save);
      }
    }
  }

  #at(name: string): { readonly Bucket: string; readonly Key: string } {
    return { Bucket: this.#bucket, Key: prefix + name };
  }
}
