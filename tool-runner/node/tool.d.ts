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
export type Tool<Args extends object = Record<string, unknown>, Result = unknown> = (
  args: Args,
  ctx: ToolContext,
) => Result | Promise<Result>;

/**
 * A failure that the tool reports on purpose.
 *
 * The caller gets the error's text with the code `TOOL_ERROR` and nothing else. Whatever else a
 * tool throws is answered as `EXECUTION_ERROR` with the error's class and text, since nobody
 * decided that it should reach the caller.
 */
export class ToolError extends Error {}

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
 * configuration. Every method returns a promise.
 */
export interface ToolContext {
  /** The caller, as the request says it. */
  readonly userId: string;
  readonly sessionId: string;
  /** The calling agent. */
  readonly appName: string;
  readonly taskId: string;

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
  readonly onStatus?: (text: string) => boolean | void | Promise<boolean | void>;
}

/** A context for the test of a tool. In a sandbox the runner makes one per call. */
export function createToolContext(options?: ToolContextOptions): ToolContext;
