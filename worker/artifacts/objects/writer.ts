/**
 * Writes an object under the key of a version, once: a save whose answer was lost knows its object
 * again, and never reports a failure while its object may be there unclaimed.
 */
import { randomInt } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { StoreError } from "../store.ts";
import {
  type NewObject,
  type ObjectBucket,
  type ObjectFacts,
  UnknownOutcomeError,
  type Uploader,
} from "./bucket.ts";
import type { CleanUps } from "./clean-ups.ts";
import { isOfSave } from "./metadata.ts";
import { type Reservation, Reservations } from "./reservations.ts";

/** Attempts at one version while others come and go. */
const maxConflicts = 10;

/** Longest wait before another attempt, in milliseconds. */
const conflictWaitMs = 100;

/** Uploads of one version that the server loses, each sent anew. */
const maxLostUploads = 3;

/** Milliseconds to find out what became of a write that was aborted. */
const outcomeTimeoutMs = 1_000;

/** An object under the key of a version. */
export interface VersionWrite {
  readonly object: NewObject;
  readonly saveId: string;
  readonly uploader: Uploader;
  /** Whether the server keeps conditions. */
  readonly isConditional: boolean;
}

/** The key is this save's, or another object has it, or another saver is writing to it. */
export type WriteOutcome = "own" | "taken" | "reserved";

/** Writes the versions of a worker's saves. */
export class VersionWriter {
  readonly #bucket: ObjectBucket;
  readonly #reservations: Reservations;

  constructor(bucket: ObjectBucket, cleanUps: CleanUps) {
    this.#bucket = bucket;
    this.#reservations = new Reservations(bucket, cleanUps);
  }

  /**
   * Rejects with errors of the bucket and the content, or the signal's reason, when the object does
   * not exist; when that is not known, with {@link UnknownOutcomeError}. A server that gives no
   * answer may still carry the request out later, after the writer has looked.
   */
  async write(version: VersionWrite, signal: AbortSignal): Promise<WriteOutcome> {
    const { object, uploader, isConditional } = version;
    if (isConditional && !uploader.isInParts) return this.#create(version, signal);
    const { key } = object;
    await using reservation = await this.#reservations.reserve(key, isConditional, signal);
    if (reservation === undefined) return "reserved";
    if ((await this.#bucket.head(key, signal)) !== undefined) return "taken";
    // Awaited, since the reservation ends here.
    if (isConditional) return await this.#create(version, signal);
    return await this.#writeReserved(version, reservation, signal);
  }

  /** On a server that lets one saver create an object. */
  async #create(version: VersionWrite, signal: AbortSignal): Promise<WriteOutcome> {
    const { object, uploader } = version;
    let lostUploads = 0;
    let hasConflicted = false;
    for (let conflicts = 0; conflicts < maxConflicts; conflicts++) {
      try {
        await uploader.put(object);
        return "own";
      } catch (error) {
        const meaning = this.#bucket.meaningOf(error);
        if (meaning === "conflict") {
          hasConflicted = true;
          const isAborted = await sleep(randomInt(conflictWaitMs), false, { signal }).catch(
            () => true,
          );
          if (isAborted) return this.#afterFailure(version, error, signal);
          continue;
        }
        if (meaning !== "condition failed" && meaning !== "upload gone") {
          // The other request of a conflict may be an earlier one of this save.
          if (hasConflicted && (await this.#lookUp(version, signal)) === "own") return "own";
          return this.#afterFailure(version, error, signal);
        }
        const outcome = await this.#lookUp(version, signal);
        if (outcome !== undefined) return outcome;
        if (meaning === "upload gone" && ++lostUploads > maxLostUploads) throw error;
      }
    }
    // The other request of the conflicts may be an earlier one of this save.
    return (await this.#lookUp(version, signal)) ?? "taken";
  }

  /** Who has the key; undefined where it is free. */
  async #lookUp(version: VersionWrite, signal: AbortSignal): Promise<"own" | "taken" | undefined> {
    const found = await this.#find(version, undefined, signal);
    if (found === undefined) return undefined;
    return isOfSave(found.metadata, version.saveId) ? "own" : "taken";
  }

  /** On a server that lets all savers write, of whom the reservation keeps off the others. */
  async #writeReserved(
    version: VersionWrite,
    reservation: Reservation,
    signal: AbortSignal,
  ): Promise<WriteOutcome> {
    try {
      await version.uploader.put(version.object);
    } catch (error) {
      return this.#afterFailure(version, error, signal).catch((failure: unknown) => {
        // It may still arrive, and would replace what another saver wrote: it keeps the key.
        if (!this.#isWithoutTrace(error)) reservation.keep();
        throw failure;
      });
    }
    try {
      return (await this.#lookUp(version, signal)) ?? "taken";
    } catch {
      // The server has said that it is there. An agent may have replaced it, as it may later.
      return "own";
    }
  }

  /** The outcome of a write that failed, perhaps after it was carried out. */
  async #afterFailure(version: VersionWrite, error: unknown, signal: AbortSignal): Promise<"own"> {
    if (this.#isWithoutTrace(error) || error instanceof UnknownOutcomeError) throw error;
    const found = await this.#find(version, error, signal);
    if (isOfSave(found?.metadata, version.saveId)) return "own";
    throw error;
  }

  /** Whether nothing came of the write: the server refused it, or the content was incomplete. */
  #isWithoutTrace(error: unknown): boolean {
    return error instanceof StoreError || this.#bucket.meaningOf(error) === "refused";
  }

  /** The object that the key has now, also after an abort. */
  async #find(
    { object }: VersionWrite,
    cause: unknown,
    signal: AbortSignal,
  ): Promise<ObjectFacts | undefined> {
    const head = (limit: AbortSignal) => this.#bucket.head(object.key, limit);
    try {
      return await head(signal).catch((error: unknown) => {
        if (!signal.aborted) throw error;
        return head(AbortSignal.timeout(outcomeTimeoutMs));
      });
    } catch (error) {
      throw new UnknownOutcomeError(cause ?? error);
    }
  }
}
