/**
 * The artifact store contract: versions of named files, per scope.
 */
import type { FileHandle } from "node:fs/promises";
import type { Readable } from "node:stream";
import type { ArtifactReference } from "../protocol/invocation.ts";
import type { MarkStore } from "./marks.ts";

/** The three levels of isolation between artifacts. */
export interface ArtifactScope {
  /** The namespace as spelled, the agent's name, or a fixed value (`ARTIFACT_SCOPE`). */
  readonly root: string;
  readonly userId: string;
  readonly sessionId: string;
}

/** Metadata of a version. */
export interface ArtifactMetadata {
  readonly mimeType: string;
}

/** Facts about a version. */
export interface ArtifactFacts {
  readonly version: number;
  readonly sizeBytes: number;
  readonly metadata: ArtifactMetadata;
  /** Changes when other content takes the number: an ETag, a generation, an inode. Opaque. */
  readonly etag: string;
}

/** Sees the facts of a version before its content moves. What it throws rejects the opening. */
export type AcceptFacts = (facts: ArtifactFacts) => Promise<void>;

/** Content to read once. The receiver consumes or destroys `body`. */
export interface ArtifactContent {
  readonly body: Readable;
  /** The regular file that `body` reads, for copies by the kernel. It is closed with `body`. */
  readonly file?: FileHandle;
  /**
   * A path of that file until `body` closes, which sandboxes may mount read-only. All users can
   * read it by that path.
   */
  readonly sharedPath?: string;
}

/** An open version. */
export interface OpenedArtifact extends ArtifactFacts, ArtifactContent {}

/**
 * Content to save. Each `open` returns a new stream from the first byte on, which the store
 * consumes or destroys. A store opens again after a lost race for the version.
 */
export interface ArtifactSource {
  /** Exact bytes of each stream; a save with more or fewer bytes fails. */
  readonly sizeBytes: number;
  open(): Readable;
  /** The regular file that the streams read, for copies by the kernel. The caller closes it. */
  readonly file?: FileHandle;
}

/** A stored version. */
export interface SavedArtifact {
  readonly version: number;
  readonly sizeBytes: number;
  /** Tells what this save stored from what others may store under the number. Opaque. */
  readonly saveId: string;
}

/**
 * A store of artifacts. `artifacts/scope.ts` checks names, and refuses them with `invalid-name`.
 * Methods reject with StoreError or the signal's reason only; `open` also as `accept` throws.
 */
export interface ArtifactStore extends AsyncDisposable {
  /** Short name for logs: `memory`, `filesystem`. */
  readonly kind: string;
  /** Marks beside the artifacts. Absent in stores of one process, and where `check` found so. */
  readonly marks?: MarkStore | undefined;
  /** Absent without a cache on this machine. */
  readonly cached?: CacheCounts;
  /**
   * Opens a version, or the latest by default. Rejects with StoreError `not-found`. The signal
   * cancels the opening, not the body.
   *
   * @param accept is called by stores that move content before they return. The others leave it:
   *   their receiver looks at the facts before it reads, so that opening takes one request. Later
   *   the latest version may be another one, with other facts.
   */
  open(
    scope: ArtifactScope,
    reference: ArtifactReference,
    signal: AbortSignal,
    accept?: AcceptFacts,
  ): Promise<OpenedArtifact>;
  /** Facts about a version, or about the latest by default. Rejects as `open` does. */
  stat(
    scope: ArtifactScope,
    reference: ArtifactReference,
    signal: AbortSignal,
  ): Promise<ArtifactFacts>;
  /**
   * Saves a new version, numbered from 0. Concurrent saves of a name get different versions. A
   * failed save leaves none, and readers see finished versions only. Also rejects with
   * NotDeletedError, around the reason. A server may still carry out a request that it never
   * answered, of a save that was aborted or timed out, and then a version appears later.
   */
  save(
    scope: ArtifactScope,
    filename: string,
    source: ArtifactSource,
    metadata: ArtifactMetadata,
    signal: AbortSignal,
  ): Promise<SavedArtifact>;
  /**
   * Deletes a saved version with its metadata; others keep their numbers. False when it is gone or
   * replaced. The next save gets the number after the highest remaining one.
   */
  deleteVersion(
    scope: ArtifactScope,
    filename: string,
    saved: SavedArtifact,
    signal: AbortSignal,
  ): Promise<boolean>;
  /**
   * Filenames with a version, as `open` takes them: the session's, and the user's with `user:`. In
   * the order of `Array.sort`. What `artifactKey` refuses is left out; a name below which others
   * put no version may be listed. Rejects with StoreError `too-many-names` above `maxNames`.
   */
  names(scope: ArtifactScope, signal: AbortSignal): Promise<readonly string[]>;
  /** All versions of a name, ascending. */
  versions(scope: ArtifactScope, filename: string, signal: AbortSignal): Promise<readonly number[]>;
  /**
   * Checks that the store is usable; creates at most its root. Resolves with what it cannot do as
   * well as others, for the operator. Rejects with StoreError.
   */
  check(signal: AbortSignal): Promise<readonly string[]>;
  /**
   * Access of worker and agents by owners and modes, for `--check`. Absent in stores without them.
   * Rejects with StoreError.
   */
  access?(signal: AbortSignal): Promise<StoreAccess>;
}

/** Readings of artifacts through a cache, since its opening. */
export interface CacheCounts {
  /** Without the content from the store. */
  readonly hits: number;
  readonly misses: number;
}

/** Facts for the operator; they may name users and artifacts. */
export interface StoreAccess {
  readonly [fact: string]: unknown;
  /** Expected failures of later operations, in spite of `check`. */
  readonly problems: readonly string[];
}

/**
 * `too-many-versions`: the version numbers of a name are used up. `too-many-names`: a session and
 * its user have more names than a listing may have. `unavailable`: the store is
 * unreachable or full, or the content has another size than announced.
 */
export type StoreErrorReason =
  "not-found" | "invalid-name" | "too-many-versions" | "too-many-names" | "unavailable";

/** A failure of a store. `message` is public: it names no path and no bucket. */
export class StoreError extends Error {
  readonly reason: StoreErrorReason;

  constructor(reason: StoreErrorReason, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = "StoreError";
    this.reason = reason;
  }
}

/**
 * A save failed with `cause`, and its version may exist: it could not be deleted, or the store does
 * not tell. `deleteVersion` of `saved` takes it back.
 */
export class NotDeletedError extends Error {
  readonly saved: SavedArtifact;

  constructor(saved: SavedArtifact, cause: unknown) {
    super("a version of a failed save may exist", { cause });
    this.name = "NotDeletedError";
    this.saved = saved;
  }
}
