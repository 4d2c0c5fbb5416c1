/**
 * StoreErrors of all stores. Their messages name only artifact, version and session.
 */
import { filenameOf, userLevel } from "./scope.ts";
import type { ArtifactKey } from "./scope.ts";
import { StoreError } from "./store.ts";

/** Name of an artifact or version in messages, with its session. */
export function artifactTitle(key: ArtifactKey, version?: number): string {
  const suffix = version === undefined ? "" : ` version ${version}`;
  const owner = key.sessionOrUser === userLevel ? "this user" : `session ${key.sessionOrUser}`;
  return `Artifact "${filenameOf(key)}"${suffix} of ${owner}`;
}

/** The artifact or version does not exist. */
export function notFound(key: ArtifactKey, version: number | undefined): StoreError {
  return new StoreError("not-found", `${artifactTitle(key, version)} was not found.`);
}

/** The save of a new version failed without a trace. */
export function notSaved(key: ArtifactKey, why: string): StoreError {
  return new StoreError("unavailable", `${artifactTitle(key)} could not be saved: ${why}.`);
}

/** Public reasons by code of errno(3). */
const publicReasons: ReadonlyMap<string, string> = new Map([
  ["ENOSPC", "no space is left in the artifact store"],
  ["EDQUOT", "the quota of the artifact store is used up"],
  ["EROFS", "the artifact store is read-only"],
  ["EACCES", "the artifact store denies access"],
  ["EPERM", "the artifact store denies access"],
]);

/**
 * Runs one operation of a store. Rejects with the signal's reason after an abort, and with
 * StoreErrors. Other errors become the `cause` of StoreError `unavailable`, with a public reason.
 */
export async function guarded<T>(
  doing: string,
  signal: AbortSignal,
  operation: () => Promise<T>,
  reasonOf: (error: unknown) => string = publicReason,
): Promise<T> {
  signal.throwIfAborted();
  try {
    return await operation();
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof StoreError) throw error;
    throw new StoreError("unavailable", `${doing}: ${reasonOf(error)}.`, { cause: error });
  }
}

function publicReason(error: unknown): string {
  const code = errorCode(error);
  if (code === undefined) return "the artifact store failed";
  return publicReasons.get(code) ?? `the artifact store failed with ${code}`;
}

/** Whether a system error says that a disk, or a quota of it, is used up. */
export function isDiskFull(error: unknown): boolean {
  return ["ENOSPC", "EDQUOT"].includes(errorCode(error) ?? "");
}

/** The code of a system error (`ENOENT`); undefined without one. */
export function errorCode(error: unknown): string | undefined {
  if (!(error instanceof Error) || !("code" in error)) return undefined;
  return typeof error.code === "string" ? error.code : undefined;
}
