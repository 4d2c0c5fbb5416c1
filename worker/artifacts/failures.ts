/**
 * What goes wrong in any store, as StoreErrors whose messages name artifact, version and session
 * and nothing else.
 */
import { userLevel, userPrefix } from "./scope.ts";
import type { ArtifactKey } from "./scope.ts";
import { StoreError } from "./store.ts";

/** How a message names an artifact, or one version of it. */
export function artifactTitle(key: ArtifactKey, version?: number): string {
  const prefix = key.sessionOrUser === userLevel ? userPrefix : "";
  const suffix = version === undefined ? "" : ` version ${version}`;
  return `Artifact "${prefix}${key.name}"${suffix}`;
}

/** The artifact, or this version of it, is not there. */
export function notFound(key: ArtifactKey, version: number | undefined): StoreError {
  const where =
    key.sessionOrUser === userLevel ? "for this user" : `in session ${key.sessionOrUser}`;
  return new StoreError("not-found", `${artifactTitle(key, version)} was not found ${where}.`);
}

/** A new version was not stored, and nothing of it is left. */
export function notSaved(key: ArtifactKey, why: string): StoreError {
  return new StoreError("unavailable", `${artifactTitle(key)} could not be saved: ${why}.`);
}

/** Codes of `errno(3)` that an operator can act on. */
const publicReasons: ReadonlyMap<string, string> = new Map([
  ["ENOSPC", "no space is left in the artifact store"],
  ["EDQUOT", "the quota of the artifact store is used up"],
  ["EROFS", "the artifact store is read-only"],
  ["EACCES", "the artifact store denies access"],
  ["EPERM", "the artifact store denies access"],
]);

/**
 * Runs one operation of a store.
 *
 * Rejects with the signal's reason once that has aborted, with StoreErrors as they are, and with
 * StoreError `unavailable` for everything else: its message is `doing` and a publishable reason,
 * the error itself its `cause`.
 */
export async function guarded<T>(
  doing: string,
  signal: AbortSignal,
  operation: () => Promise<T>,
): Promise<T> {
  signal.throwIfAborted();
  try {
    return await operation();
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof StoreError) throw error;
    throw new StoreError("unavailable", `${doing}: ${publicReason(error)}.`, { cause: error });
  }
}

function publicReason(error: unknown): string {
  const code = errorCode(error);
  if (code === undefined) return "the artifact store failed";
  return publicReasons.get(code) ?? `the artifact store failed with ${code}`;
}

/** The code of a system error (`ENOENT`), or undefined when it has none. */
export function errorCode(error: unknown): string | undefined {
  if (!(error instanceof Error) || !("code" in error)) return undefined;
  return typeof error.code === "string" ? error.code : undefined;
}
