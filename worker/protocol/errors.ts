/**
 * The closed list of error codes on the wire and the one error class that carries them.
 */

import type { LimitReached } from "./resource-limits.ts";

/**
 * What a caller needs to know about a code. Codes are strings on the wire, never JSON-RPC integers.
 */
interface ErrorCodeFacts {
  /**
   * True when the same request may succeed elsewhere or later; agents retry only
   * `TOOL_NOT_AVAILABLE` by themselves.
   */
  readonly retryable: boolean;
}

const facts = {
  /** The tool ran past its time limit, or its deadline passed before it could start. */
  SANDBOX_TIMEOUT: { retryable: false },
  /**
   * The sandboxed process ended by a non-zero exit code or a signal, or the sandbox did not start.
   */
  SANDBOX_FAILED: { retryable: false },
  /** The tool is not (or no longer) in this worker's manifest. */
  TOOL_NOT_AVAILABLE: { retryable: true },
  /** The tool's module was imported, but the function or class the manifest names is not in it. */
  TOOL_NOT_FOUND: { retryable: false },
  /** The tool's module cannot be imported. */
  IMPORT_ERROR: { retryable: false },
  /** The tool raised, was called with arguments it does not take, or ran out of memory. */
  EXECUTION_ERROR: { retryable: false },
  /** The tool itself reported a failure by raising `ToolError`. */
  TOOL_ERROR: { retryable: false },
  /** An input artifact could not be loaded, or an output artifact could not be saved. */
  ARTIFACT_ERROR: { retryable: false },
  /** The request does not validate; the message names the field. */
  INVALID_REQUEST: { retryable: false },
  /** A fault of the worker or of the runner's result. */
  INTERNAL_ERROR: { retryable: false },
  /** Too large, too many waiting, or too little disk. */
  RESOURCE_EXHAUSTED: { retryable: true },
  /**
   * The call was delivered again, its tool may have run already, and the manifest forbids to run it
   * twice.
   */
  NOT_REPEATED: { retryable: false },
  /** Too many workers began the call and ended, or the broker hands it out no more. */
  POISONED: { retryable: false },
} as const satisfies Record<string, ErrorCodeFacts>;

/**
 * A code of the wire protocol (design document, appendix D, with `RESOURCE_EXHAUSTED` of later
 * peers, and `NOT_REPEATED` and `POISONED` of ours).
 */
export type ErrorCode = keyof typeof facts;

/** Every code, in documentation order. */
export const errorCodes = Object.keys(facts) as readonly ErrorCode[];

/**
 * A failure that the caller gets as its answer. `message` is publishable: no secret, no path on the
 * host, no stack. Only the log gets `cause`.
 */
export class InvocationError extends Error {
  readonly code: ErrorCode;
  /** Whether the tool wrote the message, which may contain secrets and is for the caller only. */
  readonly isToolsText: boolean;
  /** The limit that ended the call, if any. */
  readonly limit: LimitReached | undefined;

  constructor(
    code: ErrorCode,
    message: string,
    options: {
      readonly cause?: unknown;
      readonly isToolsText?: boolean;
      readonly limit?: LimitReached | undefined;
    } = {},
  ) {
    super(message, "cause" in options ? { cause: options.cause } : undefined);
    this.name = "InvocationError";
    this.code = code;
    this.isToolsText = options.isToolsText ?? false;
    this.limit = options.limit;
  }

  /** Whether trying again, here later or on another worker, can help. */
  get retryable(): boolean {
    return facts[this.code].retryable;
  }
}
