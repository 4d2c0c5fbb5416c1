/**
 * The artifact store contract: versions of named files, per scope.
 */
import type { Readable } from "node:stream";
import type { ArtifactReference } from "../protocol/invocation.ts";

/** The three levels that separate artifacts from each other. */
export interface ArtifactScope {
  /** The configured namespace, the agent's name or a fixed value (`ARTIFACT_SCOPE`). */
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

/** Content to be saved. `open` may be called again: create-only version allocation resends after a lost race. */
export interface ArtifactSource {
  readonly sizeBytes: number;
  open(): Readable;
}

/** A version that is now stored. */
export interface SavedArtifact {
  readonly version: number;
  readonly sizeBytes: number;
}

/**
 * A store of artifacts. Names are checked by `artifacts/scope.ts` before any store sees them as a key;
 * every method throws StoreError and nothing else.
 */
export interface ArtifactStore extends AsyncDisposable {
  /** Short name for logs: `memory`, `filesystem`. */
  readonly kind: string;
  /** Opens a version, or the latest when the reference names none. Throws StoreError `not-found`. */
  open(scope: ArtifactScope, reference: ArtifactReference, signal: AbortSignal): Promise<OpenedArtifact>;
  /** Saves a new version, numbered from 0; concurrent savers of one name all succeed with versions of their own. */
  save(
    scope: ArtifactScope,
    filename: string,
    source: ArtifactSource,
    metadata: ArtifactMetadata,
    signal: AbortSignal,
  ): Promise<SavedArtifact>;
  /** Every version of a name, ascending; empty when there is none. */
  versions(scope: ArtifactScope, filename: string, signal: AbortSignal): Promise<readonly number[]>;
  /** Whether the store can be reached and used. No side effects that stay. Throws StoreError. */
  check(signal: AbortSignal): Promise<void>;
}

/** Why a store refused. */
export type StoreErrorReason = "not-found" | "invalid-name" | "too-many-versions" | "unavailable";

/** A failure of a store. `message` is publishable: it names artifact, version and session, never a path or bucket. */
export class StoreError extends Error {
  readonly reason: StoreErrorReason;

  constructor(reason: StoreErrorReason, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = "StoreError";
    this.reason = reason;
  }
}
