/**
 * What a tool is handed and what it imports: the context and the errors, documented in tool.d.ts.
 */
import { logStatus, partialStatus, progressStatus } from "./statuses.js";

const { byteLength } = Buffer;
const { now } = Date;
const { entries, hasOwn } = Object;
const { max } = Math;
const fs = process.getBuiltinModule("node:fs");

const filenameMaxBytes = 255;
/** Characters of a refused filename that are quoted. */
const maxQuotedCharacters = 80;

/**
 * @import { ArtifactContent, ArtifactDescription } from "./tool.js"
 * @import { Progress, ToolContext, ToolContextOptions, Tools } from "./tool.js"
 * @import { Status } from "./statuses.js"
 */

/**
 * The mark of a ToolError. The class does not tell: the runner and the tool load this file under
 * two paths.
 */
const toolErrorMark = Symbol.for("secure-tool-runtime.ToolError");

/** A failure that the tool reports on purpose. */
export class ToolError extends Error {
  static {
    const { prototype } = this;
    Object.defineProperty(prototype, "name", { value: "ToolError", writable: true });
    Object.defineProperty(prototype, toolErrorMark, { value: true });
  }
}

/**
 * Whether something thrown is a ToolError, be it of another copy of this file.
 *
 * @param {unknown} thrown
 * @returns {thrown is ToolError}
 */
export function isToolError(thrown) {
  try {
    return typeof thrown === "object" && thrown !== null && Reflect.get(thrown, toolErrorMark);
  } catch {
    return false;
  }
}

/** The mark of a ToolCallError, for the same reason. */
const callErrorMark = Symbol.for("secure-tool-runtime.ToolCallError");

/** A call of a tool that failed, or another use of the gateway. */
export class ToolCallError extends Error {
  static {
    const { prototype } = this;
    Object.defineProperty(prototype, "name", { value: "ToolCallError", writable: true });
    Object.defineProperty(prototype, callErrorMark, { value: true });
  }

  /**
   * @override
   * @param {unknown} value
   * @returns {boolean} true also for those of another copy of this file
   */
  static [Symbol.hasInstance](value) {
    if (this !== ToolCallError) return Function.prototype[Symbol.hasInstance].call(this, value);
    return typeof value === "object" && value !== null && callErrorMark in value;
  }

  /**
   * @param {string} code
   * @param {string} text
   * @param {import("./tool.js").ToolCallErrorDetails} [details]
   */
  constructor(code, text, details = {}) {
    super(text);
    this.code = code;
    this.retryable = details.retryable ?? false;
    this.data = details.data;
    this.op = details.op;
    this.stepResults = details.stepResults;
  }
}

/** @implements {ToolContext} */
export class Context {
  #artifacts;
  #filenames;
  #config;
  #outputDir;
  #onStatus;
  #signalOf;
  #toolsOf;
  /**
   * What was said of each output artifact, under the names of the protocol.
   *
   * @type {Map<string, { mime_type?: string, description?: string }>}
   */
  #outputs = new Map();

  /** @param {ToolContextOptions} options */
  constructor(options) {
    this.userId = options.userId ?? "";
    this.sessionId = options.sessionId ?? "";
    this.appName = options.appName ?? "";
    this.taskId = options.taskId ?? "";
    this.deadlineMs = options.deadlineMs;
    this.traceparent = options.traceparent;
    this.tracestate = options.tracestate;
    this.#artifacts = new Map(entries(options.artifacts ?? {}));
    this.#filenames = new Map(entries(options.filenames ?? {}));
    this.#config = options.config ?? {};
    this.#outputDir = options.outputDir ?? "output";
    this.#onStatus = options.onStatus ?? (() => false);
    this.#signalOf = () => options.signal ?? new AbortController().signal;
    this.#toolsOf = () => options.tools;
  }

  get signal() {
    const signal = this.#signalOf();
    this.#signalOf = () => signal;
    return signal;
  }

  get tools() {
    // The runner and `createToolContext` name them.
    return /** @type {Tools} */ (this.#toolsOf());
  }

  /** @param {string} text */
  async sendStatus(text) {
    return this.#send(() => ({ text: `${text}` }));
  }

  /** @param {Progress} progress */
  async reportProgress(progress) {
    return this.#send(() => progressStatus(progress));
  }

  /**
   * @param {string} level
   * @param {string} text
   * @param {Readonly<Record<string, unknown>>} fields
   */
  async log(level, text, fields = {}) {
    return this.#send(() => logStatus(level, text, fields));
  }

  /** @param {unknown} value */
  async partialResult(value) {
    return this.#send(() => partialStatus(value));
  }

  timeLeftSeconds() {
    return this.deadlineMs === undefined ? undefined : max(0, (this.deadlineMs - now()) / 1000);
  }

  /** @param {string} param */
  async loadArtifact(param) {
    const path = this.#artifacts.get(param) ?? this.#pathOfFilename(param);
    if (path === undefined) return null;
    try {
      return await fs.promises.readFile(path);
    } catch (error) {
      if (/** @type {NodeJS.ErrnoException} */ (error).code === "ENOENT") return null;
      throw error;
    }
  }

  /**
   * @param {string} param
   * @param {string} encoding
   */
  async loadArtifactText(param, encoding = "utf-8") {
    const decoder = new TextDecoder(encoding, { fatal: true });
    const content = await this.loadArtifact(param);
    return content === null ? null : decoder.decode(content);
  }

  /**
   * @param {string} filename
   * @param {ArtifactContent} content
   * @param {ArtifactDescription} about
   */
  async saveArtifact(filename, content, about = {}) {
    checkFilename(filename);
    const data = writable(content);
    const path = `${this.#outputDir}/${filename}`;
    try {
      await fs.promises.writeFile(path, data);
    } catch (error) {
      // Half of an artifact is none.
      await fs.promises.rm(path, { force: true });
      throw error;
    }
    const { mimeType, description } = about;
    this.#outputs.set(filename, {
      ...(mimeType === undefined ? {} : { mime_type: `${mimeType}` }),
      ...(description === undefined ? {} : { description: `${description}` }),
    });
    return path;
  }

  /**
   * @param {string} filename
   * @param {string} content
   * @param {ArtifactDescription} about
   */
  async saveArtifactText(filename, content, about = {}) {
    checkFilename(filename);
    if (typeof content !== "string") {
      throw new TypeError(`content must be text, not ${kindOf(content)}`);
    }
    const mimeType = about.mimeType ?? (filename.includes(".") ? undefined : "text/plain");
    return this.saveArtifact(filename, content, { ...about, mimeType });
  }

  async listArtifacts() {
    return Object.fromEntries(this.#artifacts);
  }

  async listOutputArtifacts() {
    const entries = await fs.promises.readdir(this.#outputDir, { withFileTypes: true });
    return entries.flatMap((entry) => (entry.isFile() ? [entry.name] : [])).sort();
  }

  /**
   * @param {string} key
   * @param {unknown} otherwise
   */
  async getConfig(key, otherwise = null) {
    return hasOwn(this.#config, key) ? this.#config[key] : otherwise;
  }

  /** What was said of the saved artifacts, by filename. For the runner. */
  describedOutputs() {
    return new Map([...this.#outputs].filter(([, said]) => Object.keys(said).length > 0));
  }

  /**
   * Sends a status before anything is awaited: the tool may keep the event loop busy afterwards.
   *
   * @param {() => Status} describe may throw
   */
  async #send(describe) {
    try {
      const { text, details } = describe();
      return (await this.#onStatus(text, details)) !== false;
    } catch {
      return false;
    }
  }

  /** @param {string} filename */
  #pathOfFilename(filename) {
    for (const [param, name] of this.#filenames) {
      if (name === filename) return this.#artifacts.get(param);
    }
    for (const path of this.#artifacts.values()) {
      if (path.slice(path.lastIndexOf("/") + 1) === filename) return path;
    }
    return undefined;
  }
}

/** @param {ArtifactContent} content */
function writable(content) {
  if (typeof content === "string") return content;
  if (ArrayBuffer.isView(content)) return content;
  if (content instanceof ArrayBuffer || content instanceof SharedArrayBuffer) {
    return new Uint8Array(content);
  }
  if (typeof content === "object" && content !== null && Symbol.asyncIterator in content) {
    return content;
  }
  throw new TypeError(`content must be bytes, text or a stream, not ${kindOf(content)}`);
}

/** @param {string} filename */
function checkFilename(filename) {
  if (typeof filename !== "string") {
    throw new TypeError(`an artifact's filename must be text, not ${kindOf(filename)}`);
  }
  const problem = problemOfFilename(filename);
  if (problem === undefined) return;
  const quoted = JSON.stringify(filename.slice(0, maxQuotedCharacters));
  throw new RangeError(`artifact filename ${quoted} ${problem}`);
}

/** @param {string} filename */
function problemOfFilename(filename) {
  if (filename === "") return "is empty";
  if (filename === "." || filename === "..") return "names a directory";
  if (/[/\\]/.test(filename)) return "contains a path separator; artifacts have plain names";
  if (/\p{Cc}/u.test(filename)) return "contains a control character";
  if (!filename.isWellFormed()) return "contains a lone surrogate, which no file name can hold";
  const sizeBytes = byteLength(filename);
  if (sizeBytes <= filenameMaxBytes) return undefined;
  return `is ${sizeBytes} bytes long; at most ${filenameMaxBytes} are possible`;
}

/** @param {unknown} value */
function kindOf(value) {
  if (value === null || value === undefined) return `${value}`;
  if (Array.isArray(value)) return "an array";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}
