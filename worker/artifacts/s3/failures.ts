/**
 * Public reasons of the SDK's errors. They name no bucket, key, endpoint or credential.
 */
import { guarded } from "../failures.ts";
import { reasonOfRequest, reasons } from "../objects/reasons.ts";

/** What is read of an error of the SDK, of Node or of the network. */
interface Failure {
  readonly name?: unknown;
  readonly code?: unknown;
  readonly $metadata?: { readonly httpStatusCode?: number };
}

/** By the error's name: Amazon S3 API Reference, "Error responses". */
const reasonsByName: ReadonlyMap<unknown, string> = new Map([
  ["NoSuchBucket", reasons.noBucket],
  ["CredentialsProviderError", reasons.noCredentials],
  ["ExpiredToken", reasons.expired],
  ["PermanentRedirect", reasons.elsewhere],
  ["AuthorizationHeaderMalformed", reasons.elsewhere],
  ["RequestTimeTooSkewed", reasons.skewedClock],
  ["EntityTooLarge", reasons.tooLarge],
  ["XAmzContentChecksumMismatch", reasons.damaged],
  ["BadDigest", reasons.damaged],
  ["TimeoutError", reasons.silent],
]);

/** Why a request failed, for callers. */
export function reasonOf(error: unknown): string {
  const { name, code, $metadata } = (error ?? {}) as Failure;
  const status = $metadata?.httpStatusCode;
  // The answer to a HEAD has no name.
  if (status === 301) return reasons.elsewhere;
  return reasonsByName.get(name) ?? reasonOfRequest(status, code);
}

/** `guarded`, with the SDK's reasons. */
export function guardedRequest<T>(
  doing: string,
  signal: AbortSignal,
  operation: () => Promise<T>,
): Promise<T> {
  return guarded(doing, signal, operation, reasonOf);
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

/** Whether a condition of the request did not hold; an upload's end says so with status 200. */
export function isConditionFailed(error: unknown): boolean {
  const { name, $metadata } = (error ?? {}) as Failure;
  return $metadata?.httpStatusCode === 412 || name === "PreconditionFailed";
}

/** Whether the server has refused the request, so that nothing came of it. */
export function isRefused(error: unknown): boolean {
  const status = ((error ?? {}) as Failure).$metadata?.httpStatusCode ?? 0;
  return status >= 400 && status < 500;
}

/** Whether the server refuses a header that it does not know. */
export function isUnsupported(error: unknown): boolean {
  return ((error ?? {}) as Failure).$metadata?.httpStatusCode === 501;
}

/** Whether there is no such upload, as after one whose answer was lost. */
export function isUploadGone(error: unknown): boolean {
  return ((error ?? {}) as Failure).name === "NoSuchUpload";
}

const conflicts: ReadonlySet<unknown> = new Set(["ConditionalRequestConflict", "OperationAborted"]);

/** Whether another request for the key was under way, so that the same one may succeed now. */
export function isConflict(error: unknown): boolean {
  return conflicts.has(((error ?? {}) as Failure).name);
}
