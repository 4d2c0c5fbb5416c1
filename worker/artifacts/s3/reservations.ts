/**
 * Versions on servers that keep no conditions: who announces a key and then finds no other's
 * announcement has it alone. Two who announce at the same time see each other, and both give way.
 * Needs listings that show what was written before.
 */
import { createHash, randomInt, randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import {
  DeleteObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  type S3Client,
} from "@aws-sdk/client-s3";
import { marksLevel } from "../scope.ts";

/** Where announcements are, beside the scopes. */
const prefix = `${marksLevel}/versions/`;

/** Attempts at a key that others want at the same time. */
const maxAttempts = 4;

/**
 * Milliseconds of the longest wait before the second attempt; on a slow server, as many as the
 * first one took. Doubled before each later one.
 */
const firstWaitMs = 50;

/** A key that nobody else writes. */
export interface Reservation {
  /** Gives it back, once the object is there or will never be. */
  release(signal: AbortSignal): Promise<void>;
}

/** The reservations of a worker in a bucket. */
export class Reservations {
  readonly #client: S3Client;
  readonly #bucket: string;
  /** Keys of this process's savers, which need not ask the server about each other. */
  readonly #own = new Set<string>();

  constructor(client: S3Client, bucket: string) {
    this.#client = client;
    this.#bucket = bucket;
  }

  /**
   * Reserves a key; undefined when others want it, or did when their worker died. The caller then
   * looks whether the object exists. One that is never released keeps the key from being used.
   */
  async reserve(key: string, signal: AbortSignal): Promise<Reservation | undefined> {
    if (this.#own.has(key)) return undefined;
    this.#own.add(key);
    try {
      let longestMs = firstWaitMs;
      for (let attempt = 0; attempt < maxAttempts; attempt++) {
        if (attempt > 0) await sleep(randomInt((longestMs *= 2)), undefined, { signal });
        const startMs = performance.now();
        const reservation = await this.#announce(key, signal);
        if (reservation !== undefined) return reservation;
        longestMs = Math.max(longestMs, Math.ceil(performance.now() - startMs));
      }
    } catch (error) {
      this.#own.delete(key);
      throw error;
    }
    this.#own.delete(key);
    return undefined;
  }

  async #announce(key: string, signal: AbortSignal): Promise<Reservation | undefined> {
    const Bucket = this.#bucket;
    // A digest, since an announcement's key is longer than the key, which has a limit.
    const place = `${prefix}${createHash("sha256").update(key).digest("hex")}/`;
    const Key = `${place}${randomUUID()}`;
    const remove = async (abortSignal: AbortSignal): Promise<void> => {
      await this.#client.send(new DeleteObjectCommand({ Bucket, Key }), { abortSignal });
    };
    const put = new PutObjectCommand({ Bucket, Key, Body: "reserved" });
    await this.#client.send(put, { abortSignal: signal });
    const list = new ListObjectsV2Command({ Bucket, Prefix: place, MaxKeys: 2 });
    const { Contents = [] } = await this.#client.send(list, { abortSignal: signal });
    if (Contents.length !== 1 || Contents[0]?.Key !== Key) {
      await remove(signal);
      return undefined;
    }
    return {
      release: async (releaseSignal) => {
        await remove(releaseSignal);
        this.#own.delete(key);
      },
    };
  }
}
