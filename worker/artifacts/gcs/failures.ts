/**
 * Failures of requests, their public reasons, and what they mean.
 */
import type { ErrorMeaning } from "../objects/bucket.ts";
import { isRefusal, reasonOfRequest, reasons } from "../objects/reasons.ts";

/** A request that failed. It keeps nothing of what was sent. */
export class GcsError extends Error {
  /** HTTP status of the answer, if there was one. */
  readonly status: number | undefined;
  /** Of an error of Node's or the network's, or a code of this file. */
  readonly code: string | undefined;
  /** Attempts until this failure; above 1 an earlier one may have been carried out. */
  readonly attempts: number;

  constructor(message: string, status: number | undefined, code: string | undefined, attempts = 1) {
    super(message);
    this.name = "GcsError";
    this.status = status;
    this.code = code;
    this.attempts = attempts;
  }

  /** The same failure after other attempts. */
  after(attempts: number): GcsError {
    return new GcsError(this.message, this.status, this.code, this.attempts + attempts);
  }
}

/** Codes of failures that no server answers. */
export const failureCodes = {
  silent: "TIMEOUT",
  noCredentials: "NO_CREDENTIALS",
  skewedClock: "SKEWED_CLOCK",
} as const;

const reasonsByCode: ReadonlyMap<string | undefined, string> = new Map([
  [failureCodes.silent, reasons.silent],
  [failureCodes.noCredentials, reasons.noCredentials],
  [failureCodes.skewedClock, reasons.skewedClock],
]);

/** Why a request failed, for callers. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof GcsError)) return reasonOfRequest(undefined, undefined);
  const known = reasonsByCode.get(error.code);
  if (known !== undefined) return known;
  if (error.status === 404) return reasons.noBucket;
  if (error.status === 413) return reasons.tooLarge;
  if (error.status === 400 && /checksum|crc32c|hash/i.test(error.message)) return reasons.damaged;
  return reasonOfRequest(error.status, error.code);
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

/** Whether the object is not there, though its bucket is. */
export function isMissing(error: unknown): boolean {
  if (!(error instanceof GcsError) || error.status !== 404) return false;
  return !error.message.startsWith("The specified bucket does not exist");
}

/** Whether a condition of the request did not hold. */
export function isConditionFailed(error: unknown): boolean {
  return error instanceof GcsError && error.status === 412;
}

/** Whether the server does not accept the token. */
export function isUnauthorized(error: unknown): boolean {
  return error instanceof GcsError && error.status === 401;
}

/** Whether the same request may succeed in a moment. */
export function isTransient(error: unknown): boolean {
  if (!(error instanceof GcsError)) return false;
  const { status, code } = error;
  if (status !== undefined) return [408, 429, 500, 502, 503, 504].includes(status);
  return code === failureCodes.silent || reasonOf(error) === reasons.away;
}

/** What an error says about the object that a request was for. */
export function meaningOf(error: unknown): ErrorMeaning {
  if (!(error instanceof GcsError)) return "unknown";
  if (isConditionFailed(error)) return "condition failed";
  // A server has lost an upload that it has started, as it has one that was completed.
  if (error.status === 410) return "upload gone";
  return isRefusal(error.status) && error.attempts === 1 ? "refused" : "unknown";
}
