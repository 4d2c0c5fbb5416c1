/**
 * What the SDK's errors mean, and their public reasons, which name no bucket, key, endpoint or
 * credential.
 */
import type { ErrorMeaning } from "../objects/bucket.ts";
import { isRefusal, reasonOfRequest, reasons } from "../objects/reasons.ts";

/** What is read of an error of the SDK, of Node or of the network. */
interface Failure {
  readonly name?: unknown;
  readonly code?: unknown;
  readonly message?: unknown;
  readonly $metadata?: { readonly httpStatusCode?: number; readonly attempts?: number };
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
  const { name, code, message, $metadata } = (error ?? {}) as Failure;
  const status = $metadata?.httpStatusCode;
  // The answer to a HEAD has no name.
  if (status === 301) return reasons.elsewhere;
  // The SDK's error has neither name nor code.
  if (message === "Region is missing") return reasons.noRegion;
  return reasonsByName.get(name) ?? reasonOfRequest(status, code);
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

const conflicts: ReadonlySet<unknown> = new Set(["ConditionalRequestConflict", "OperationAborted"]);

/** Whether the server refused the last attempt of a request. */
export function isRefused(error: unknown): boolean {
  return isRefusal(((error ?? {}) as Failure).$metadata?.httpStatusCode);
}

/** What an error says about the object that a request was for. */
export function meaningOf(error: unknown): ErrorMeaning {
  const { name, $metadata } = (error ?? {}) as Failure;
  const status = $metadata?.httpStatusCode;
  if (isConditionFailed(error)) return "condition failed";
  if (conflicts.has(name)) return "conflict";
  if (name === "NoSuchUpload") return "upload gone";
  if (status === 501) return "unsupported";
  // The error is the last attempt's, and an earlier one may have been carried out.
  return isRefusal(status) && ($metadata?.attempts ?? 1) === 1 ? "refused" : "unknown";
}
