/**
 * Writes an object under the key of a version, once: a save whose answer was lost knows its object
 * again, and never reports a failure while its object may be there unclaimed.
 */
import { randomInt } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { StoreError } from "../store.ts";
import type { NewObject, ObjectBucket, ObjectFacts, Uploader } from "./bucket.ts";
import { isOfSave } from "./metadata.ts";
import { type Reservation, Reservations } from "./reservations.ts";

/** Attempts at one version while others come and go. */
const maxConflicts = 10;

/** Longest wait before another attempt, in milliseconds. */
const conflictWaitMs = 100;

/** Milliseconds to find out what became of a write that was aborted. */
const outcomeTimeoutMs = 5_000;

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

/** A write failed with `cause`, and its object may exist all the same. */
export class UnknownOutcomeError extends Error {
  constructor(cause: unknown) {
    super("the outcome of a write is not known", { cause });
    this.name = "UnknownOutcomeError";
  }
}

/** Writes the versions of a worker's saves. */
export class VersionWriter {
  readonly #bucket: ObjectBucket;
  readonly #reservations: Reservations;

  constructor(bucket: ObjectBucket) {
    this.#bucket = bucket;
    this.#reservations = new Reservations(bucket);
  }

  /**
   * Rejects with errors of the bucket and the content, or the signal's reason, when the object does
   * not exist; when that is not known, with {@link UnknownOutcomeError}.
   */
  async write(version: VersionWrite, signal: AbortSignal): Promise<WriteOutcome> {
    const { object, uploader, isConditional } = version;
    if (isConditional && !uploader.isInParts) return this.#create(version, signal);
    const { key } = object;
    await using reservation = await this.#reservations.reserve(key, isConditional, signal);
    if (reservation === undefined) return "reserved";
    if ((await this.#bucket.head(key, signal)) !== undefined) return "taken";
    return isConditional
      ? this.#create(version, signal)
      : this.#writeReserved(version, reservation, signal);
  }

  /** On a server that lets one saver create an object. */
  async #create(version: VersionWrite, signal: AbortSignal): Promise<WriteOutcome> {
    const { object, saveId, uploader } = version;
    for (let conflicts = 0; conflicts < maxConflicts; conflicts++) {
      try {
        await uploader.put(object);
        return "own";
      } catch (error) {
        const meaning = this.#bucket.meaningOf(error);
        if (meaning === "conflict") {
          await sleep(randomInt(conflictWaitMs), undefined, { signal });
          continue;
        }
        if (meaning !== "condition failed" && meaning !== "upload gone")
          return this.#afterFailure(version, error, signal);
        const found = await this.#find(version, undefined, signal);
        if (found !== undefined) return isOfSave(found.metadata, saveId) ? "own" : "taken";
      }
    }
    return "taken";
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
      const found = await this.#find(version, undefined, signal);
      return isOfSave(found?.metadata, version.saveId) ? "own" : "taken";
    } catch {
      // The server has said that it is there. An agent may have replaced it, as it may later.
      return "own";
    }
  }

  /** The outcome of a write that failed, perhaps after it was carried out. */
  async #afterFailure(version: VersionWrite, error: unknown, signal: AbortSignal): Promise<"own"> {
    if (this.#isWithoutTrace(error)) throw error;
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
