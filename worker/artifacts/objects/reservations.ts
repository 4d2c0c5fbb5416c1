/**
 * Reserves keys, so that savers do not write in vain, or over each other's objects.
 *
 * On a server with conditions a reservation only saves work: large content goes to a version that
 * no other worker is writing. An old one, as of a worker that was killed, is taken over.
 *
 * Without conditions only reservations keep savers apart. A saver announces a key, and has it
 * alone if a listing then shows no other announcement. Two savers that announce a key at the same
 * time see each other, and both give way. That needs listings that show what was written before.
 */
import { createHash, randomInt, randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Condition, ObjectBucket } from "./bucket.ts";
import type { CleanUps } from "./clean-ups.ts";
import { marksPrefix } from "./marks.ts";

/** Milliseconds after which a reservation on a server with conditions is taken over. */
const maxAgeMs = 15 * 60_000;

/** Attempts to announce a key that others want at the same time. */
const maxAnnouncements = 4;

/**
 * Milliseconds of the longest wait before the second announcement; on a slow server, as many as the
 * first one took. Doubled before each later one.
 */
const firstWaitMs = 50;

/**
 * A key that no other worker writes. Disposing it gives the key back, and never fails; one that the
 * server does not remove keeps a number from being used.
 */
export interface Reservation extends AsyncDisposable {
  /** Lets it stand, since what was written may still arrive. */
  keep(): void;
}

/** Gives a reservation back; undefined when others have the key. */
type Release = ((signal: AbortSignal) => Promise<unknown>) | undefined;

/** The reservations of a worker in a bucket. Methods reject with the bucket's errors. */
export class Reservations {
  readonly #bucket: ObjectBucket;
  readonly #cleanUps: CleanUps;
  /** Keys of this process's savers, which need not ask the server about each other. */
  readonly #own = new Set<string>();

  constructor(bucket: ObjectBucket, cleanUps: CleanUps) {
    this.#bucket = bucket;
    this.#cleanUps = cleanUps;
  }

  /**
   * Reserves a key; undefined when others have it or want it. The caller then looks whether the
   * object exists.
   */
  async reserve(
    key: string,
    isConditional: boolean,
    signal: AbortSignal,
  ): Promise<Reservation | undefined> {
    if (this.#own.has(key)) return undefined;
    this.#own.add(key);
    await using stack = new AsyncDisposableStack();
    stack.defer(() => void this.#own.delete(key));
    // A digest, since a reservation's key is longer than the key, which has a limit.
    const place = `${marksPrefix}versions/${createHash("sha256").update(key).digest("hex")}`;
    const release = isConditional
      ? await this.#occupy(place, signal)
      : await this.#announce(`${place}/`, signal);
    if (release === undefined) return undefined;
    const owned = stack.move();
    let isKept = false;
    return {
      keep: () => void (isKept = true),
      [Symbol.asyncDispose]: async () => {
        if (!isKept) await this.#cleanUps.run(release, signal);
        await owned.disposeAsync();
      },
    };
  }

  async #occupy(key: string, signal: AbortSignal): Promise<Release> {
    const content = Buffer.from(randomUUID());
    const release = (etag: string) => (limit: AbortSignal) => this.#bucket.delete(key, etag, limit);
    const created = await this.#writeIf("absent", key, content, signal);
    if (created !== undefined) return release(created);
    const found = await this.#bucket.read(key, signal);
    if (found === undefined) return undefined;
    // A request that was repeated may find its own reservation.
    if (content.equals(found.content)) return release(found.etag);
    if (!(found.ageMs > maxAgeMs)) return undefined;
    const taken = await this.#writeIf(found, key, content, signal);
    return taken === undefined ? undefined : release(taken);
  }

  /** The ETag; undefined where the condition does not hold. */
  async #writeIf(
    condition: Condition,
    key: string,
    content: Buffer,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    try {
      return await this.#bucket.write(reservationAt(key), content, condition, signal);
    } catch (error) {
      const meaning = this.#bucket.meaningOf(error);
      if (meaning === "condition failed" || meaning === "conflict") return undefined;
      // Only its answer may be lost.
      if (meaning !== "refused") {
        const remove = (limit: AbortSignal) => this.#removeOwn(key, content, limit);
        await this.#cleanUps.run(remove, signal);
      }
      throw error;
    }
  }

  async #removeOwn(key: string, content: Buffer, signal: AbortSignal): Promise<void> {
    const found = await this.#bucket.read(key, signal);
    if (found !== undefined && content.equals(found.content))
      await this.#bucket.delete(key, found.etag, signal);
  }

  async #announce(prefix: string, signal: AbortSignal): Promise<Release> {
    let longestMs = firstWaitMs;
    for (let announcements = 0; announcements < maxAnnouncements; announcements++) {
      if (announcements > 0) await sleep(randomInt((longestMs *= 2)), undefined, { signal });
      const startMs = performance.now();
      const release = await this.#announceOnce(prefix, signal);
      if (release !== undefined) return release;
      longestMs = Math.max(longestMs, Math.ceil(performance.now() - startMs));
    }
    return undefined;
  }

  async #announceOnce(prefix: string, signal: AbortSignal): Promise<Release> {
    const key = `${prefix}${randomUUID()}`;
    const release = (limit: AbortSignal) => this.#bucket.delete(key, undefined, limit);
    await using stack = new AsyncDisposableStack();
    // Also where the write fails, since only its answer may be lost.
    stack.defer(() => this.#cleanUps.run(release, signal).then(() => undefined));
    await this.#bucket.write(reservationAt(key), Buffer.from("reserved"), undefined, signal);
    const { objects } = await this.#bucket.list({ prefix, maxEntries: 2 }, signal);
    if (objects.length !== 1 || objects[0]?.key !== key) return undefined;
    stack.move();
    return release;
  }
}

function reservationAt(key: string) {
  return { key, contentType: "text/plain", metadata: {} } as const;
}
