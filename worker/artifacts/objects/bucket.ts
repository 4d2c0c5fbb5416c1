/**
 * The bucket contract: what servers of objects do differently. A new kind of server implements it,
 * and has an artifact store.
 */
import type { Readable } from "node:stream";
import type { ArtifactKey, ArtifactLevel } from "../scope.ts";
import type { PartBuffersOptions } from "./part-buffers.ts";
import type { UploadContent } from "./parts.ts";

/** Facts about an object. */
export interface ObjectFacts {
  /** Identifies the content, and is what a condition names: an ETag, a generation. */
  readonly etag: string;
  readonly sizeBytes: number;
  readonly contentType: string | undefined;
  readonly metadata: Readonly<Record<string, unknown>>;
  /** Why it is no content of an artifact, for callers. */
  readonly objection?: string;
}

/** An object with its content. */
export interface OpenedObject extends ObjectFacts {
  /** Its errors are StoreError `unavailable`. */
  readonly body: Readable;
}

/** A small object, with its whole content. */
export interface SmallObject {
  readonly content: Uint8Array;
  readonly etag: string;
  /** Milliseconds since it was written, by the server's clock. */
  readonly ageMs: number;
}

/** An object to write. */
export interface NewObject {
  readonly key: string;
  readonly contentType: string;
  readonly metadata: Readonly<Record<string, string>>;
}

/** A write failed with `cause`, and its object may exist all the same. */
export class UnknownOutcomeError extends Error {
  constructor(cause: unknown) {
    super("the outcome of a write is not known", { cause });
    this.name = "UnknownOutcomeError";
  }
}

/** What a write needs: that no object has the key, or only the one with this ETag. */
export type Condition = "absent" | { readonly etag: string };

/** Content on its way into a bucket. The owner disposes it. */
export interface Uploader extends Disposable {
  /** Whether the content goes in several requests, all of them again with each `put`. */
  readonly isInParts: boolean;
  /** Resolves when the content of a single request is read. Rejects with the content's error. */
  readonly ready: Promise<unknown>;
  /**
   * Writes the content. The caller may try another key after a failure, which leaves no parts.
   * Rejects with StoreError where nothing came of it, and with UnknownOutcomeError where its object
   * must not be taken for the content.
   */
  put(object: NewObject): Promise<void>;
}

/** What to list. */
export interface Listing {
  readonly prefix: string;
  /** Whether keys go on after the next slash, which otherwise ends them as a prefix. */
  readonly isDeep?: boolean;
  readonly maxEntries?: number;
  /** The `next` of the page before. */
  readonly from?: string;
}

/** Entries of a listing, up to 1,000. */
export interface Page {
  readonly objects: readonly (Pick<SmallObject, "etag" | "ageMs"> & { readonly key: string })[];
  /** Deeper prefixes, with their slash. */
  readonly prefixes: readonly string[];
  /** Undefined on the last page. */
  readonly next: string | undefined;
}

/** What an error of a request says about the object. */
export type ErrorMeaning =
  /** The condition of the write did not hold. */
  | "condition failed"
  /** Another request for the key was under way: the same one may succeed now. */
  | "conflict"
  /** The server has no such upload, as after one whose answer was lost. */
  | "upload gone"
  /** The server knows no conditions. */
  | "unsupported"
  /** The server has refused the request, and nothing came of it. */
  | "refused"
  /** The request, or one that it repeats, may have been carried out, or may still be. */
  | "unknown";

/** Where agents look for artifacts. */
export interface ObjectLayout {
  /**
   * Prefixes of the versions of an artifact: the one to save below, then others where agents may
   * have saved. Throws StoreError `invalid-name` for a long one.
   */
  prefixesOf(key: ArtifactKey, filename: string): readonly [string, ...string[]];
  /** Prefix of all artifacts of a session, or of a user. */
  levelPrefixOf(level: ArtifactLevel): string;
  /** Metadata that agents read. `sessionId` saves it, also where it belongs to the user. */
  metadataOf(key: ArtifactKey, sessionId: string, version: number): Record<string, string>;
}

/**
 * A bucket. Methods reject with errors for `reasonOf` and `meaningOf`, or with the signal's reason,
 * after they have repeated what fails for a moment. A missing bucket is an error.
 */
export interface ObjectBucket extends Disposable {
  /** Short name for logs. */
  readonly kind: string;
  readonly layout: ObjectLayout;
  /** Bounds on the memory of uploads. */
  readonly partBuffers: PartBuffersOptions;
  /** Whether the server is known to keep conditions. */
  readonly isConditional: boolean;
  /** Whether a server that keeps no conditions will do, and what it lacks, for the operator. */
  readonly withoutConditions: { readonly isUsable: boolean; readonly why: string };

  /** Facts about an object; undefined without it. */
  head(key: string, signal: AbortSignal): Promise<ObjectFacts | undefined>;
  /** Undefined without the object. `doing` begins the messages of the body's errors. */
  open(key: string, doing: string, signal: AbortSignal): Promise<OpenedObject | undefined>;
  /** Undefined without the object. */
  read(key: string, signal: AbortSignal): Promise<SmallObject | undefined>;
  list(listing: Listing, signal: AbortSignal): Promise<Page>;
  /** Writes small content. Resolves with the object's ETag. */
  write(
    object: NewObject,
    content: Buffer,
    condition: Condition | undefined,
    signal: AbortSignal,
  ): Promise<string>;
  /** Takes content that will be written, once, where `isExclusive` under a key that is free. */
  upload(content: UploadContent, isExclusive: boolean, signal: AbortSignal): Uploader;
  /** Deletes an object, or only the one with this ETag. False where that is gone. */
  delete(key: string, etag: string | undefined, signal: AbortSignal): Promise<boolean>;

  /** The public reason of an error. */
  reasonOf(error: unknown): string;
  meaningOf(error: unknown): ErrorMeaning;
}
