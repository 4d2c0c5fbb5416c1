/**
 * Errors of `Runtime.execute`, by the texts of the tool runtimes that it is compatible with.
 */
import type { JsonObject } from "../../support/json/json.ts";
import type { ToolCallRecord } from "./tool-calls.ts";

/** Each code's text, and whether the same execution may succeed later. */
export const runtimeErrorFacts = {
  RUNTIME_UNAVAILABLE: { text: "runtime unavailable", retryable: true },
  BACKEND_DENIED: { text: "backend denied by policy", retryable: false },
  SANDBOX_VIOLATION: { text: "sandbox policy violation", retryable: false },
  TIMEOUT: { text: "execution timeout", retryable: true },
  RESOURCE_LIMIT: { text: "resource limit exceeded", retryable: false },
  MISSING_GATEWAY: { text: "gateway is required", retryable: false },
  MISSING_CODE: { text: "code is required", retryable: false },
  INVALID_LIMITS: { text: "invalid limits", retryable: false },
  /** The code itself failed: an exception, a syntax error, a value that is no JSON. Ours. */
  EXECUTION_FAILED: { text: "execution failed", retryable: false },
} as const;

export type RuntimeErrorCode = keyof typeof runtimeErrorFacts;

/** The part of an execution that failed. */
export const runtimeOps = ["validate", "select", "open", "execute"] as const;
export type RuntimeOp = (typeof runtimeOps)[number];

/** What was there when an execution failed. */
export interface PartialResult {
  readonly stdout: string;
  readonly stderr: string;
  readonly toolCalls: readonly ToolCallRecord[];
  readonly durationMs: number;
}

/** Facts of a {@link RuntimeError}. */
export interface RuntimeErrorOptions {
  /** After the code's text and a colon. */
  readonly detail?: string | undefined;
  readonly op?: RuntimeOp | undefined;
  readonly backend?: string | undefined;
  readonly retryable?: boolean | undefined;
  readonly cause?: unknown;
  readonly data?: JsonObject | undefined;
  readonly partial?: Partial<PartialResult> | undefined;
}

/** A failed execution. */
export class RuntimeError extends Error {
  readonly code: RuntimeErrorCode;
  readonly op: RuntimeOp;
  /** The message after the code's text. */
  readonly detail: string | undefined;
  /** The kind of the backend, where one was chosen. */
  readonly backend: string | undefined;
  readonly retryable: boolean;
  /** `limit` of a limit that was met; `line`, `column` and `stack` of code that failed. */
  readonly data: JsonObject | undefined;
  /** Undefined where the code never ran. */
  readonly partial: Partial<PartialResult> | undefined;

  constructor(code: RuntimeErrorCode, options: RuntimeErrorOptions = {}) {
    const { text, retryable } = runtimeErrorFacts[code];
    const { detail } = options;
    super(
      detail === undefined ? text : `${text}: ${detail}`,
      "cause" in options ? { cause: options.cause } : undefined,
    );
    this.name = "RuntimeError";
    this.code = code;
    this.op = options.op ?? "execute";
    this.detail = detail;
    this.backend = options.backend;
    this.retryable = options.retryable ?? retryable;
    this.data = options.data;
    this.partial = options.partial;
  }
}
