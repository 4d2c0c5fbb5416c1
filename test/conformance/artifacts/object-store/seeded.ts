/**
 * Versions in a bucket that another program saved.
 */
import type { ArtifactScope } from "../../../../worker/artifacts/store.ts";

/** A version that was saved by another program. */
export interface SeededVersion {
  readonly scope: ArtifactScope;
  readonly filename: string;
  readonly version: number;
  readonly content: string;
}

/** The key of a version of a session, as agents write it. */
export function keyOf({ scope, filename, version }: Omit<SeededVersion, "content">): string {
  return `${scope.root}/${scope.userId}/${scope.sessionId}/${filename}/${version}`;
}
