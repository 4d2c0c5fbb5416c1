/**
 * What the object `tools` has besides the tools, as tool-runner/node/tool.d.ts declares it.
 */

/** Declarations, for stubs. */
export const typescriptMembers = `/** What \`tools\` has besides the tools. */
export interface ToolMethods {
  /**
   * Calls tools one after the other until one fails; resolves with the last result, \`{}\` for no
   * steps. A ToolCallError has the results so far in \`stepResults\`.
   */
  chain<Result extends object = Record<string, unknown>>(
    steps: Iterable<ChainStep>,
    options?: CallOptions,
  ): Promise<Result>;

  /** Tools that match words, best first; at most \`limit\`, 10 where not given. */
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

  /** Examples of a tool's use; at most \`max\`, 3 where not given. */
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

/** A call in a chain. */
export interface ChainStep {
  /** The tool's id. */
  readonly tool: string;
  readonly args?: object;
  /** Whether the result of the step before becomes the argument \`previous\`. */
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
`;

/** What programs find without an import, for stubs whose module has `Tools`. */
export const typescriptGlobals = `declare global {
  const tools: Tools;
  /** What the call brings. */
  const inputs: Record<string, unknown>;
  /** Gives a copy of a value back beside the result. */
  function display(value: unknown): void;
  /** The result, if it is set. */
  var __out: unknown;
}
`;
