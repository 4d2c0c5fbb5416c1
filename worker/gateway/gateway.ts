/**
 * The contract of a tool gateway: code finds and calls tools by it, in this process or from a
 * sandbox. Implementations are safe for concurrent use.
 */
import type { ToolExample } from "../protocol/tool-calls/example.ts";
import { type ErrorCode, errorCodeFacts } from "../protocol/errors.ts";
import type { CreatedArtifact } from "../protocol/invocation.ts";
import type { JsonObject } from "../support/json/json.ts";

/** How much a document says of its tool. */
export const detailLevels = ["summary", "schema", "full"] as const;
export type DetailLevel = (typeof detailLevels)[number];

/** A tool in a list. */
export interface ToolSummary {
  /** `namespace:name`, or `name`. */
  readonly id: string;
  readonly name: string;
  /** Empty for a tool without a namespace. */
  readonly namespace: string;
  readonly shortDescription: string;
  readonly tags: readonly string[];
}

/** What is known of a tool. */
export interface ToolDoc {
  readonly id: string;
  readonly name: string;
  readonly namespace: string;
  readonly summary: string;
  /** JSON Schemas, from the level `schema` on. */
  readonly parameters?: JsonObject;
  readonly returns?: JsonObject;
  /** At the level `full`. */
  readonly notes?: string;
  readonly examples?: readonly ToolExample[];
}

/** An artifact that a call saved. */
export type CreatedArtifactName = Pick<
  CreatedArtifact,
  "filename" | "version" | "mimeType" | "sizeBytes"
>;

/** The result of a tool. */
export interface RunResult {
  readonly structured: JsonObject;
  readonly artifacts: readonly CreatedArtifactName[];
}

/** A call in a chain. */
export interface ChainStep {
  readonly toolId: string;
  readonly args?: JsonObject;
  /** Puts the previous structured result under `args.previous`, over a given one. */
  readonly usePrevious?: boolean;
}

/** A failed step. */
export interface StepError {
  readonly code: GatewayCode;
  readonly message: string;
  readonly retryable: boolean;
  readonly data?: JsonObject;
}

/** What came of a step: a result or an error. */
export interface StepResult {
  readonly toolId: string;
  readonly structured?: JsonObject;
  readonly artifacts?: readonly CreatedArtifactName[];
  readonly error?: StepError;
}

/** The last step's result, and each step's. */
export interface ChainResult extends RunResult {
  readonly stepResults: readonly StepResult[];
}

/**
 * Finds and calls tools. Arguments are read-only, results are copies that the caller owns. Each
 * operation rejects with the signal's reason on abort, else with GatewayError.
 */
export interface ToolGateway {
  /** The kind of backend that runs all its tools, for records; undefined where there is none. */
  readonly backendKind?: string;
  /** At most `limit` tools, the best first; for an empty query all tools, by id. */
  searchTools(query: string, limit: number, signal: AbortSignal): Promise<readonly ToolSummary[]>;
  /** The namespaces of the tools, sorted. */
  listNamespaces(signal: AbortSignal): Promise<readonly string[]>;
  describeTool(id: string, level: DetailLevel, signal: AbortSignal): Promise<ToolDoc>;
  listToolExamples(id: string, max: number, signal: AbortSignal): Promise<readonly ToolExample[]>;
  /** Calls a tool. An unknown tool and one that is not allowed are both `NOT_ALLOWED`. */
  runTool(id: string, args: JsonObject, signal: AbortSignal): Promise<RunResult>;
  /**
   * Calls tools one after the other and stops at the first error, which has `stepResults` of the
   * steps so far. No steps: an empty result.
   */
  runChain(steps: readonly ChainStep[], signal: AbortSignal): Promise<ChainResult>;
}

/** Bytes of an artifact. */
export interface PieceRequest {
  readonly filename: string;
  /** The latest by default. */
  readonly version?: number;
  readonly offset: number;
  /** From 1 to `maxPieceBytes`. */
  readonly length: number;
}

export interface ArtifactPiece {
  /** Fewer than asked for at the end of the artifact. */
  readonly bytes: Uint8Array;
  readonly version: number;
  readonly mimeType: string;
  /** Of the whole artifact. */
  readonly sizeBytes: number;
}

/** Largest piece of an artifact. */
export const maxPieceBytes = 512 * 1024;

/** A gateway of a program in a sandbox, which also reads artifacts of the program's session. */
export interface ProgramGateway extends ToolGateway {
  loadArtifact(piece: PieceRequest, signal: AbortSignal): Promise<ArtifactPiece>;
}

/** Facts about the codes that only gateways have. */
const gatewayCodeFacts = {
  /** The tool is not in the scope of the gateway, or does not exist. */
  NOT_ALLOWED: { retryable: false },
  /** A limit of the gateway; `data` has `limit` and `bound`. */
  LIMIT_REACHED: { retryable: false },
  /** The channel to the worker is closed. */
  GATEWAY_CLOSED: { retryable: false },
} as const;

/** A code of a gateway's error. */
export type GatewayCode = ErrorCode | keyof typeof gatewayCodeFacts;

const codeFacts: Readonly<Record<GatewayCode, { readonly retryable: boolean }>> = {
  ...errorCodeFacts,
  ...gatewayCodeFacts,
};

/** Every code. */
export const gatewayCodes = Object.keys(codeFacts) as readonly GatewayCode[];

/** The part of an operation that failed. */
export const toolOps = [
  "resolve",
  "select_backend",
  "validate_input",
  "execute",
  "validate_output",
] as const;
export type ToolOp = (typeof toolOps)[number];

/** A failed operation. The message is publishable, as that of InvocationError. */
export class GatewayError extends Error {
  readonly code: GatewayCode;
  readonly op: ToolOp;
  /** Whether the same operation may succeed later. */
  readonly retryable: boolean;
  readonly data: JsonObject | undefined;
  /** Of a chain: the results so far, the last with this error. */
  readonly stepResults: readonly StepResult[] | undefined;
  /** The kind of backend that ran the call, for records; undefined where none did. */
  readonly backend: string | undefined;

  /** `retryable` is the code's unless given. */
  constructor(
    code: GatewayCode,
    op: ToolOp,
    message: string,
    options: {
      readonly cause?: unknown;
      readonly retryable?: boolean | undefined;
      readonly data?: JsonObject | undefined;
      readonly stepResults?: readonly StepResult[] | undefined;
      readonly backend?: string | undefined;
    } = {},
  ) {
    super(message, "cause" in options ? { cause: options.cause } : undefined);
    this.name = "GatewayError";
    this.code = code;
    this.op = op;
    this.retryable = options.retryable ?? codeFacts[code].retryable;
    this.data = options.data;
    this.stepResults = options.stepResults;
    this.backend = options.backend;
  }
}

/** The error of an operation with wrong arguments. */
export function invalid(message: string, cause?: unknown): GatewayError {
  return new GatewayError("INVALID_REQUEST", "validate_input", message, { cause });
}
