/**
 * What a Node tool imports: the context it is handed, the error it may throw.
 *
 * ```ts
 * import { ToolError, type ToolContext } from "secure-tool-runtime/tool";
 *
 * export async function countWords({ text }: { text: string }, ctx: ToolContext) {
 *   if (text === "") throw new ToolError("There is no text to count");
 *   await ctx.sendStatus("Counting…");
 *   return { count: text.split(/\s+/).length };
 * }
 * ```
 */

/**
 * A tool: an exported function that takes the call's arguments as one object, and the context.
 *
 * The arguments are as the request's JSON has them; nothing checks that they are of the type
 * `Args`.
 */
export interface Tool<
  Args extends object = Record<string, unknown>,
  Result = unknown,
> extends ToolSchemas {
  (args: Args, ctx: ToolContext): Result | Promise<Result>;
}

/**
 * What a tool may say of itself, as members of its function; else its types and comments tell it.
 * A schema is a JSON Schema (2020-12), or an object of zod 4 or of another library with Standard
 * JSON Schema.
 */
export interface ToolSchemas {
  /** What the tool does, for the agent. */
  description?: string;
  /** Schema of the arguments. */
  parameters?: object;
  /** Schema of the result. */
  result?: object;
  /** Schema of the tool's configuration. */
  config?: object;
}

/**
 * A failure that the tool reports on purpose.
 *
 * The caller gets the error's text with the code `TOOL_ERROR` and nothing else. Whatever else a
 * tool throws is answered as `EXECUTION_ERROR` with the error's class and text, since nobody
 * decided that it should reach the caller.
 */
export class ToolError extends Error {}

/** Whether the same use may succeed later, and what the failure says besides. */
export interface ToolCallErrorDetails {
  readonly retryable?: boolean | undefined;
  readonly data?: Readonly<Record<string, unknown>> | undefined;
  /** The step that failed: resolve, select_backend, validate_input, execute, validate_output. */
  readonly op?: string | undefined;
  /** Of a chain: its steps until the failure. */
  readonly stepResults?: readonly StepResult[] | undefined;
}

/**
 * A call of a tool that failed, or another use of `tools`. The message is the error's text.
 *
 * The code is one of the worker's error codes, or `NOT_ALLOWED`, `LIMIT_REACHED`, `GATEWAY_CLOSED`.
 */
export class ToolCallError extends Error {
  constructor(code: string, text: string, details?: ToolCallErrorDetails);
  readonly code: string;
  readonly retryable: boolean;
  readonly data: Readonly<Record<string, unknown>> | undefined;
  readonly op: string | undefined;
  readonly stepResults: readonly StepResult[] | undefined;
}

/** What an artifact may be made of. Text is saved as UTF-8; a stream is saved chunk by chunk. */
export type ArtifactContent =
  string | Uint8Array | ArrayBufferLike | AsyncIterable<string | Uint8Array>;

/** What a tool may say of an artifact that it saves. */
export interface ArtifactDescription {
  /** Defaults to what the filename's extension stands for. */
  readonly mimeType?: string | undefined;
  readonly description?: string | undefined;
}

/**
 * What a tool knows of its call, and its ways to the outside: status updates, artifacts,
 * configuration, other tools. Every method returns a promise, but for `timeLeftSeconds`.
 */
export interface ToolContext {
  /** The caller, as the request says it. */
  readonly userId: string;
  readonly sessionId: string;
  /** The calling agent. */
  readonly appName: string;
  readonly taskId: string;
  /** Epoch milliseconds at which the time limit ends the tool, if known. */
  readonly deadlineMs: number | undefined;
  /** W3C trace context of the call, if it has one. */
  readonly traceparent: string | undefined;
  /** What vendors of tracing add to it, if the call has a trace context with such a part. */
  readonly tracestate: string | undefined;

  /**
   * Aborts when the call is being ended: its caller has cancelled it, or its time limit has passed.
   * The process is killed three seconds later. To be told, a tool has to read this before that
   * happens; otherwise the process ends at once.
   */
  readonly signal: AbortSignal;

  /** The tools that this tool may call: what it imports as `tools`. */
  readonly tools: Tools;

  /** Seconds until the deadline, at least 0; undefined without one. */
  timeLeftSeconds(): number | undefined;

  /**
   * Tells the user how far the tool is. Best effort: false when it could not be sent; never
   * rejects.
   *
   * A text that does not fit into a line of 4096 bytes is shortened and ends in "…". The promise
   * waits while the reader is behind. Whatever was sent before the tool returned arrives before its
   * answer, awaited or not.
   */
  sendStatus(text: string): Promise<boolean>;

  /**
   * A status that says how much is done: `Reading (3 of 10)`, for programs also as numbers. False
   * when it could not be sent, and for what is no finite number from 0; never rejects.
   */
  reportProgress(progress: Progress): Promise<boolean>;

  /**
   * A status that is a line of a log: `Warning: Slow page (url=…)`, for programs also as level,
   * text and fields. An unknown level counts as info. Values of fields that are no text, number or
   * boolean are sent as their text. False when it could not be sent; never rejects.
   */
  log(level: LogLevel, text: string, fields?: Readonly<Record<string, unknown>>): Promise<boolean>;

  /**
   * A status with a part of the result, as JSON of at most some 3 KB: with its text it has to fit
   * into a line of 4096 bytes. False when it could not be sent, for null, for what does not fit or
   * is no JSON; never rejects.
   */
  partialResult(value: unknown): Promise<boolean>;

  /**
   * The content of the artifact that was passed for a parameter; null when there is none.
   *
   * Artifacts of a list parameter are named `param[0]`, `param[1]`. Where no parameter has the
   * name, an artifact with this filename is returned.
   */
  loadArtifact(param: string): Promise<Uint8Array<ArrayBuffer> | null>;

  /**
   * Like `loadArtifact`, decoded; without a byte order mark. Rejects with a TypeError when the
   * content is not in the encoding, with a RangeError for an encoding that does not exist.
   *
   * @param encoding any label of the WHATWG encoding standard, such as "latin1"; "utf-8" where not
   *   given
   */
  loadArtifactText(param: string, encoding?: string): Promise<string | null>;

  /**
   * Saves an output artifact and returns its path. Saving a name again replaces what was there.
   *
   * Rejects with a RangeError for a filename that is not a plain name, with a TypeError for content
   * of another kind. When a stream fails, the artifact is not there.
   */
  saveArtifact(
    filename: string,
    content: ArtifactContent,
    about?: ArtifactDescription,
  ): Promise<string>;

  /** Like `saveArtifact` for text. A filename without an extension is saved as `text/plain`. */
  saveArtifactText(filename: string, content: string, about?: ArtifactDescription): Promise<string>;

  /** Path of every input artifact by parameter name. A copy. */
  listArtifacts(): Promise<Record<string, string>>;

  /** Names of the output artifacts that exist now, sorted. */
  listOutputArtifacts(): Promise<string[]>;

  /**
   * A value of the tool's configuration, which may be a secret; `otherwise`, or null, where it has
   * no such key.
   */
  getConfig(key: string, otherwise?: unknown): Promise<unknown>;
}

/** How far a tool is, in units of its own: finite numbers from 0. */
export interface Progress {
  readonly done: number;
  readonly total?: number | undefined;
  readonly message?: string | undefined;
}

export type LogLevel = "debug" | "info" | "warning" | "error";

/** A line of a tool's log. */
export interface LogLine {
  readonly level: LogLevel;
  readonly text: string;
  readonly fields?: Readonly<Record<string, string | number | boolean | null>>;
}

/** What a status says besides its text. */
export interface StatusDetails {
  readonly progress?: Progress;
  readonly log?: LogLine;
  readonly partialResult?: unknown;
}

/** What a context that is made by hand knows. Everything has a default. */
export interface ToolContextOptions {
  readonly userId?: string;
  readonly sessionId?: string;
  readonly appName?: string;
  readonly taskId?: string;
  /** The tool's configuration. */
  readonly config?: Readonly<Record<string, unknown>>;
  /** Path of each input artifact by parameter. */
  readonly artifacts?: Readonly<Record<string, string>>;
  /** Filename of each input artifact by parameter, where it is not the last part of its path. */
  readonly filenames?: Readonly<Record<string, string>>;
  /** An existing directory for output artifacts; `output` where not given. */
  readonly outputDir?: string;
  /** Gets each status, and may say false when it cannot send it. */
  readonly onStatus?: (
    text: string,
    details?: StatusDetails,
  ) => boolean | void | Promise<boolean | void>;
  /** Epoch milliseconds. */
  readonly deadlineMs?: number;
  readonly traceparent?: string;
  readonly tracestate?: string;
  /** What the tool finds as its `signal`; one that never aborts where not given. */
  readonly signal?: AbortSignal;
  /** What the tool finds as its `tools`; those of the package where not given. */
  readonly tools?: Tools;
}

/** A context for the test of a tool. In a sandbox the runner makes one per call. */
export function createToolContext(options?: ToolContextOptions): ToolContext;

/**
 * The tools that this tool may call, as the `gateway` of its manifest entry says.
 *
 * ```ts
 * const rows = await tools.call("sales:query", { region: "West" });
 * const same = await tools.sales.query({ region: "West" });
 * ```
 *
 * Every method that returns a promise rejects with a ToolCallError: `NOT_ALLOWED` where there is no
 * gateway, `GATEWAY_CLOSED` after the worker has closed it. For arguments of a wrong kind it
 * rejects with a TypeError or a RangeError, and with the signal's reason when that aborts. Any
 * number of calls may run at the same time. Worker threads and child processes cannot use it.
 */
export const tools: Tools;

/** See `tools`. `tools.NAMESPACE.NAME` and `tools.NAME` call the tool of that name. */
export type Tools = ToolMethods & { readonly [name: string]: ToolNamespace };

/** Operations on tools. A tool's id is `namespace:name`, or `name` for one without a namespace. */
export interface ToolMethods {
  /** Calls a tool; resolves with its result, an object that belongs to the caller. */
  call<Result extends object = Record<string, unknown>>(
    id: string,
    args?: object,
    options?: CallOptions,
  ): Promise<Result>;

  /**
   * Calls tools one after the other until one fails; resolves with the last result, `{}` for no
   * steps. A ToolCallError has the results so far in `stepResults`.
   */
  chain<Result extends object = Record<string, unknown>>(
    steps: Iterable<ChainStep>,
    options?: CallOptions,
  ): Promise<Result>;

  /** Tools that match words, best first; at most `limit`, 10 where not given. */
  search(
    query: string,
    options?: CallOptions & { readonly limit?: number },
  ): Promise<ToolSummary[]>;

  /** The namespaces of the tools. */
  namespaces(options?: CallOptions): Promise<string[]>;

  /** What a tool does and takes; all that is known where no level is given. */
  describe(
    id: string,
    options?: CallOptions & { readonly level?: "summary" | "schema" | "full" },
  ): Promise<ToolDescription>;

  /** Examples of a tool's use; at most `max`, 3 where not given. */
  examples(id: string, options?: CallOptions & { readonly max?: number }): Promise<ToolExample[]>;

  /** The content of an artifact of the call's user and session; the newest version if not given. */
  loadArtifact(
    filename: string,
    options?: CallOptions & { readonly version?: number | undefined },
  ): Promise<Uint8Array<ArrayBuffer>>;

  /** The artifacts that the call with this result created; of a chain, those of all steps. */
  artifactsOf(result: object): readonly CreatedArtifact[];

  /** What became of each step of the chain with this result. */
  stepResultsOf(result: object): readonly StepResult[];
}

export interface CallOptions {
  /** Cancels the call when it aborts. */
  readonly signal?: AbortSignal | undefined;
}

/** Calls one tool. */
export type ToolFunction = <Result extends object = Record<string, unknown>>(
  args?: object,
  options?: CallOptions,
) => Promise<Result>;

/** The tools of a namespace by name; as a function, the tool of this name without a namespace. */
export type ToolNamespace = ToolFunction & { readonly [name: string]: ToolFunction };

/** A call in a chain. */
export interface ChainStep {
  /** The tool's id. */
  readonly tool: string;
  readonly args?: object;
  /** Whether the result of the step before becomes the argument `previous`. */
  readonly usePrevious?: boolean;
}

/** What became of a step of a chain. */
export interface StepResult {
  readonly toolId: string;
  readonly structured?: Readonly<Record<string, unknown>>;
  readonly artifacts?: readonly CreatedArtifact[];
  readonly error?: {
    readonly code: string;
    readonly message: string;
    readonly retryable: boolean;
    readonly data?: Readonly<Record<string, unknown>>;
  };
}

/** An artifact that a called tool created. */
export interface CreatedArtifact {
  readonly filename: string;
  readonly version: number;
  readonly mimeType: string;
  readonly sizeBytes: number;
}

/** A tool in the results of a search. */
export interface ToolSummary {
  readonly id: string;
  readonly name: string;
  readonly namespace: string;
  readonly shortDescription: string;
  readonly tags: readonly string[];
}

/** A tool's documentation. */
export interface ToolDescription {
  readonly id: string;
  readonly name: string;
  readonly namespace: string;
  readonly summary: string;
  /** JSON Schema of the arguments, from level "schema". */
  readonly parameters?: Readonly<Record<string, unknown>>;
  /** JSON Schema of the result, from level "schema". */
  readonly returns?: Readonly<Record<string, unknown>>;
  readonly notes?: string;
  readonly examples?: readonly ToolExample[];
}

/** An example of a tool's use. */
export interface ToolExample {
  readonly title?: string;
  readonly description: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly resultHint?: string;
}
