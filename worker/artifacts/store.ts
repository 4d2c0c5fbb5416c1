/**
 * The artifact store contract: versions of named files, per scope.
 */
import type { Readable } from "node:stream";
import type { ArtifactReference } from "../protocol/invocation.ts";
import type { MarkStore } from "./marks.ts";

/** The three levels that separate artifacts from each other. */
export interface ArtifactScope {
  /**
   * The configured namespace exactly as spelled, the agent's name or a fixed value
   * (`ARTIFACT_SCOPE`).
   */
  readonly root: string;
  readonly userId: string;
  readonly sessionId: string;
}

/** What a store remembers of a version besides its bytes. */
export interface ArtifactMetadata {
  readonly mimeType: string;
}

/** One version, opened for reading. The caller owns `body` and consumes or destroys it. */
export interface OpenedArtifact {
  readonly version: number;
  readonly sizeBytes: number;
  readonly metadata: ArtifactMetadata;
  readonly body: Readable;
}

/**
 * Content to be saved. `open` may be called again: create-only version allocation resends after a
 * lost race. Each stream is a fresh one from the first byte on; the store owns it and consumes or
 * destroys it.
 */
export interface ArtifactSource {
  /** Exactly as many bytes as every stream delivers; a save that gets more or fewer is refused. */
  readonly sizeBytes: number;
  open(): Readable;
}

/** A version that is now stored. */
export interface SavedArtifact {
  readonly version: number;
  readonly sizeBytes: number;
  /**
   * Tells this version from any other that had or gets its number: an inode, an ETag, a generation.
   * Opaque.
   */
  readonly etag: string;
}

/**
 * A store of artifacts. Names are checked by `artifacts/scope.ts` before any store sees them as a
 * key, and refused with `invalid-name`. Every method rejects with StoreError or, once the signal
 * has aborted, with its reason; with nothing else.
 */
export interface ArtifactStore extends AsyncDisposable {
  /** Short name for logs: `memory`, `filesystem`. */
  readonly kind: string;
  /** Marks beside the artifacts. Absent where no other process sees what the store keeps. */
  readonly marks?: MarkStore;
  /**
   * Opens a version, or the latest when the reference names none. Throws StoreError `not-found`.
   * The signal is for the opening; the body lives until its owner is done with it.
   */
  open(
    scope: ArtifactScope,
    reference: ArtifactReference,
    signal: AbortSignal,
  ): Promise<OpenedArtifact>;
  /**
   * Saves a new version, numbered from 0; concurrent savers of one name all succeed with versions
   * of their own. A save that fails or is aborted leaves no version behind, and a reader never sees
   * one that is not finished.
   */
  save(
    scope: ArtifactScope,
    filename: string,
    source: ArtifactSource,
    metadata: ArtifactMetadata,
    signal: AbortSignal,
  ): Promise<SavedArtifact>;
  /**
   * Deletes a version that `save` returned, with its metadata; newer versions stay and keep their
   * numbers. Resolves to false when it is gone or something else has its number. A save that
   * follows gets the number after the highest one left.
   */
  deleteVersion(
    scope: ArtifactScope,
    filename: string,
    saved: SavedArtifact,
    signal: AbortSignal,
  ): Promise<boolean>;
  /** Every version of a name, ascending; empty when there is none. */
  versions(scope: ArtifactScope, filename: string, signal: AbortSignal): Promise<readonly number[]>;
  /**
   * Whether the store can be reached and used. Leaves nothing behind except, at most, the root of a
   * store that is still empty. Throws StoreError.
   */
  check(signal: AbortSignal): Promise<void>;
  /**
   * What owners and modes let worker and agents do, for `--check`. Absent where a store has none.
   * Throws StoreError.
   */
  access?(signal: AbortSignal): Promise<StoreAccess>;
}

/** Facts for an operator, who may see users of the host and names of artifacts. */
export interface StoreAccess {
  readonly [fact: string]: unknown;
  /** What will fail, and for whom, though `check` has passed. */
  readonly problems: readonly string[];
}

/**
 * Why a store refused: the artifact or version is not there; a name cannot be a key; the version
 * numbers of a name are used up; the store cannot be reached, is full, or did not get what was
 * announced.
 */
export type StoreErrorReason = "not-found" | "invalid-name" | "too-many-versions" | "unavailable";

/**
 * A failure of a store. `message` is publishable: it names artifact, version and session, never a
 * path or bucket.
 */
export class StoreError extends Error {
  readonly reason: StoreErrorReason;

  constructor(reason: StoreErrorReason, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = "StoreError";
    this.reason = reason;
  }
}
