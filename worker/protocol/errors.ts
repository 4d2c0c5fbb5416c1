/**
 * The closed list of error codes on the wire and the one error class that carries them.
 */
import type { LimitReached, RefusalsReached } from "./resource-limits.ts";
import type { ProgramFailure } from "./tool-calls/program.ts";

/** Facts about a code for callers, in Markdown for docs/protocol.md. */
interface ErrorCodeFacts {
  /**
   * True when the same request may succeed elsewhere or later; agents retry only
   * `TOOL_NOT_AVAILABLE` by themselves.
   */
  readonly retryable: boolean;
  readonly cause: string;
  readonly advice: string;
}

/** Facts about every code, in the order of the documentation. */
export const errorCodeFacts = {
  SANDBOX_TIMEOUT: {
    retryable: false,
    cause:
      "The tool exceeded its time limit, or the call's time was over before the tool could start. Comes as a result with `timed_out`.",
    advice:
      "Grant more time in the manifest and in the request; make the tool report progress. If calls wait for slots, add slots.",
  },
  SANDBOX_FAILED: {
    retryable: false,
    cause:
      "The tool's process ended by an exit code or a signal, was stopped by a worker that shut down, or the sandbox did not start. If `data.reason` is `egress`, its [network](network.md) could not be made.",
    advice:
      "Read the end of standard error in the message. SIGKILL without a cause of yours: host or container ran out of memory. If the sandbox did not start, the worker's log has bubblewrap's output.",
  },
  TOOL_NOT_AVAILABLE: {
    retryable: true,
    cause:
      "The tool is in the worker's manifest and cannot be [served](#tools-that-are-not-served), was removed from it, or the worker was shut down before the tool had started. Or the worker needs its [audit log](audit.md#when-it-cannot-be-written), and cannot write it.",
    advice:
      "If the message has a reason, fix it on the worker's host. Else try again; another worker may serve it.",
  },
  TOOL_NOT_FOUND: {
    retryable: false,
    cause: "The tool's module has no function of the manifest's name.",
    advice: "Correct manifest or module.",
  },
  IMPORT_ERROR: {
    retryable: false,
    cause: "The tool's module cannot be imported.",
    advice:
      "The message has the exception. Check that the module is in `TOOLS_PYTHON_DIR`, and its package installed for `SANDBOX_PYTHON_BIN`.",
  },
  EXECUTION_ERROR: {
    retryable: false,
    cause:
      "The tool raised an exception, got arguments that it does not take, returned a value that is not JSON or does not match its [`output_schema`](schemas.md#results), or hit a limit of its profile: memory, CPU time, disk, files, statuses, file size, open files, processes.",
    advice:
      "Correct the arguments or the tool. If `data` has a [`limit`](#execution-facts), ask for less, or raise that limit in the manifest or the profile.",
  },
  TOOL_ERROR: {
    retryable: false,
    cause: "The tool raised `ToolError` to report its own failure.",
    advice: "The message is the tool's own.",
  },
  ARTIFACT_ERROR: {
    retryable: false,
    cause:
      "An input artifact could not be loaded, or an output could not be saved: missing, refused by its name, too large, too many, in a sub-directory, not saved within the call's time, or the store or a required [audit log](audit.md#when-it-cannot-be-written) failed, also at the [mark](configuration.md#claims) that a call of a tool with `idempotent: false` needs. The store then has [no output of the call](operate.md#outputs-of-calls-that-fail), or the message and `data` name those that remain.",
    advice:
      "The message names artifact, session and reason, and sizes with their limits. If it was not found, compare namespace, user and session on both sides.",
  },
  INVALID_REQUEST: {
    retryable: false,
    cause:
      "The request is not JSON, a field is missing or wrong, an argument does not [match](schemas.md#checks) the tool's schema, the profile does not exist, or the topic names no tool.",
    advice: "The message names the field or the argument.",
  },
  INTERNAL_ERROR: {
    retryable: false,
    cause: "A fault of the worker, or a malformed result from the runner.",
    advice: "The worker's log has the cause.",
  },
  RESOURCE_EXHAUSTED: {
    retryable: true,
    cause:
      "Request, result or response is too large, too many calls are queued, there is too little disk, or the [check](schemas.md#checks) of the arguments took too long.",
    advice:
      "The message has the numbers. If too large, send it as an artifact: the same request will not fit later. Else call again later, or allow more calls or more disk.",
  },
  CANCELLED: {
    retryable: false,
    cause:
      "The caller [cancelled](#cancel) the call, or a user of the [console](console.md) did. The message says whether the tool had started. The store has no output of the call, or the message and `data` name those that remain.",
    advice: "None: the caller wanted it.",
  },
  NOT_REPEATED: {
    retryable: false,
    cause:
      "The broker redelivered the call, and the tool ran for it already or [may have](brokers.md#what-calls-can-rely-on). Its manifest entry says `idempotent: false`, or the worker no longer has an entry of it.",
    advice: "Find out whether it ran. If not, call again with a new id.",
  },
  POISONED: {
    retryable: false,
    cause:
      "`BROKER_MAX_RUNS` workers started the call and were lost before they answered it, or this is its last delivery but one. It was not run this time.",
    advice:
      "See [What calls can rely on](brokers.md#what-calls-can-rely-on). The message has the count.",
  },
} as const satisfies Record<string, ErrorCodeFacts>;

/**
 * A code of the wire protocol (design document, appendix D, with `RESOURCE_EXHAUSTED` of later
 * peers, and `CANCELLED`, `NOT_REPEATED` and `POISONED` of ours).
 */
export type ErrorCode = keyof typeof errorCodeFacts;

/** Every code, in documentation order. */
export const errorCodes = Object.keys(errorCodeFacts) as readonly ErrorCode[];

/** A version in the store. */
export interface ArtifactVersion {
  readonly filename: string;
  readonly version: number;
}

/**
 * A failure that the caller gets as its answer. `message` is publishable: no secret, no path on the
 * host, no stack. Only the log gets `cause`.
 */
export class InvocationError extends Error {
  readonly code: ErrorCode;
  /** Whether the tool wrote the message, which may contain secrets and is for the caller only. */
  readonly isToolsText: boolean;
  /** Whether the message quotes arguments, which belong in no log. */
  readonly quotesArguments: boolean;
  /** The limit that ended the call, if any. */
  readonly limit: LimitReached | RefusalsReached | undefined;
  /** Outputs of the failed call that the store still has. */
  readonly remainingArtifacts: readonly ArtifactVersion[];
  /** A word for programs, where the code says too little. */
  readonly reason: "egress" | undefined;
  /** The part of the call that failed, as other tools learn it, where the code does not say it. */
  readonly op: "select_backend" | "validate_output" | undefined;
  readonly #program: ProgramFailure | undefined;

  constructor(
    code: ErrorCode,
    message: string,
    options: {
      readonly cause?: unknown;
      readonly isToolsText?: boolean;
      readonly quotesArguments?: boolean;
      readonly limit?: LimitReached | RefusalsReached | undefined;
      readonly remainingArtifacts?: readonly ArtifactVersion[];
      readonly reason?: "egress" | undefined;
      readonly op?: InvocationError["op"];
      readonly program?: ProgramFailure | undefined;
    } = {},
  ) {
    super(message, "cause" in options ? { cause: options.cause } : undefined);
    this.name = "InvocationError";
    this.code = code;
    this.isToolsText = options.isToolsText ?? false;
    this.quotesArguments = options.quotesArguments ?? false;
    this.limit = options.limit;
    this.remainingArtifacts = options.remainingArtifacts ?? [];
    this.reason = options.reason;
    this.op = options.op;
    this.#program = options.program;
  }

  /** Where the call's program failed. It quotes the source, and no property goes to the log. */
  get program(): ProgramFailure | undefined {
    return this.#program;
  }

  /** Whether trying again, here later or on another worker, can help. */
  get retryable(): boolean {
    return errorCodeFacts[this.code].retryable;
  }
}

/** Facts for log levels above debug: only the code where a tool or a caller wrote the text. */
export function failureFacts(error: InvocationError): {
  readonly code: string;
  readonly err?: InvocationError;
} {
  const isForeign = error.isToolsText || error.quotesArguments;
  return isForeign ? { code: error.code } : { code: error.code, err: error };
}
