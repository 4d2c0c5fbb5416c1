/**
 * Errors as the JSON API answers them: Cloud Storage, "HTTP status and error codes for JSON".
 */

/** An answer that is an error. */
export class GcsFakeError extends Error {
  readonly status: number;
  readonly reason: string;

  constructor(status: number, reason: string, message: string = reason) {
    super(message);
    this.name = "GcsFakeError";
    this.status = status;
    this.reason = reason;
  }

  /** The body of the answer. */
  toJSON(): object {
    const { status: code, message, reason } = this;
    return { error: { code, message, errors: [{ message, domain: "global", reason }] } };
  }
}

/** A condition of a request does not hold. */
export function conditionFailed(): GcsFakeError {
  const message = "At least one of the pre-conditions you specified did not hold.";
  return new GcsFakeError(412, "conditionNotMet", message);
}
