/**
 * Public reasons of the SDK's errors. They name no bucket, key, endpoint or credential.
 */
import { guarded } from "../failures.ts";
import { StoreError } from "../store.ts";

/** What is read of an error of the SDK, of Node or of the network. */
interface Failure {
  readonly name?: unknown;
  readonly code?: unknown;
  readonly $metadata?: { readonly httpStatusCode?: number };
}

const denied = "the artifact store denies access";
const busy = "the artifact store is busy";
const away = "the artifact store cannot be reached";

/** By the error's name: Amazon S3 API Reference, "Error responses". */
const reasons: ReadonlyMap<unknown, string> = new Map([
  ["NoSuchBucket", "its bucket does not exist"],
  ["CredentialsProviderError", "the worker has no credentials for the artifact store"],
  ["RequestTimeTooSkewed", "the worker's clock and the artifact store's differ too much"],
  ["EntityTooLarge", "the artifact store takes no object of this size"],
  ["XAmzContentChecksumMismatch", "the content was damaged on its way"],
  ["BadDigest", "the content was damaged on its way"],
  ["TimeoutError", "the artifact store does not answer"],
]);

const reasonsByStatus: ReadonlyMap<number | undefined, string> = new Map([
  [401, denied],
  [403, denied],
  [429, busy],
  [503, busy],
]);

/** Why a request failed, for callers. */
export function reasonOf(error: unknown): string {
  const { name, code, $metadata } = (error ?? {}) as Failure;
  const status = $metadata?.httpStatusCode;
  const known = reasons.get(name) ?? reasonsByStatus.get(status);
  if (known !== undefined) return known;
  if (status !== undefined && status >= 400)
    return `the artifact store failed with status ${status}`;
  return typeof code === "string" && /^E[A-Z]/.test(code) ? away : "the artifact store failed";
}

/** `guarded`, with the SDK's reasons. */
export function guardedRequest<T>(
  doing: string,
  signal: AbortSignal,
  operation: () => Promise<T>,
): Promise<T> {
  return guarded(doing, signal, async () => {
    try {
      return await operation();
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof StoreError) throw error;
      throw new StoreError("unavailable", `${doing}: ${reasonOf(error)}.`, { cause: error });
    }
  });
}

/** Whether the object is not there. A HEAD has no body, so that its error has another name. */
export function isMissing(error: unknown): boolean {
  const { name } = (error ?? {}) as Failure;
  return name === "NoSuchKey" || name === "NotFound";
}

/** Undefined where the object is not there. */
export async function unlessMissing<T>(request: () => Promise<T>): Promise<T | undefined> {
  try {
    return await request();
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

/** Whether a condition of the request did not hold. */
export function isConditionFailed(error: unknown): boolean {
  return ((error ?? {}) as Failure).$metadata?.httpStatusCode === 412;
}

/** Whether the server refuses a header that it does not know. */
export function isUnsupported(error: unknown): boolean {
  return ((error ?? {}) as Failure).$metadata?.httpStatusCode === 501;
}

/** Whether there is no such upload, as after one whose answer was lost. */
export function isUploadGone(error: unknown): boolean {
  return ((error ?? {}) as Failure).name === "NoSuchUpload";
}

/** Whether another request for the key was under way, so that the same one may succeed now. */
export function isConflict(error: unknown): boolean {
  return ((error ?? {}) as Failure).$metadata?.httpStatusCode === 409;
}
