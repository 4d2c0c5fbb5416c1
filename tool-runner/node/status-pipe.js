/**
 * The writing end of status.pipe: one line, one write. See tool-runner/PROTOCOL.md.
 */

const { closeSync, constants, openSync, write, writeSync } = process.getBuiltinModule("node:fs");
const { stringify } = JSON;
const { byteLength } = Buffer;
const { Promise: NativePromise } = globalThis;

/** POSIX writes up to PIPE_BUF bytes to a pipe in one piece; 4096 on Linux (pipe(7)). */
const lineMaxBytes = 4_096;
/**
 * Lines that may wait for a reader that is behind; a tool that awaits each status never has more
 * than one.
 */
const maxWaitingLines = 10_000;

/** @import { StatusDetails } from "./tool.js" */

/** Sends a tool's statuses, in order, without holding up the event loop. */
export class StatusPipe {
  /**
   * Whether there is a pipe that nobody reads: the worker, which reads it from before the start, is
   * gone.
   */
  isAbandoned = false;
  #path;
  /**
   * Without O_NONBLOCK, opening a pipe that nobody reads waits for ever; with it, that is ENXIO.
   *
   * @type {number | undefined}
   */
  #descriptor;
  /**
   * Another description of the same pipe, whose writes wait for the reader. For the thread pool.
   *
   * @type {number | undefined}
   */
  #waitingDescriptor;
  #waitingLines = 0;
  /** Settles when the last line so far is written. Never rejects. */
  #last = NativePromise.resolve(true);

  /** @param {string} path empty where there is no pipe */
  constructor(path) {
    this.#path = path;
    if (path === "") return;
    try {
      this.#descriptor = openSync(path, constants.O_WRONLY | constants.O_NONBLOCK);
    } catch (error) {
      this.isAbandoned = codeOf(error) === "ENXIO";
    }
  }

  /**
   * Sends a status; false when it cannot be sent. Rejects only where details are no JSON. Where
   * they do not fit into the line, the text goes alone, shortened if need be; a partial result is
   * sent whole or not at all.
   *
   * @param {string} text
   * @param {StatusDetails} [details]
   * @returns {Promise<boolean>}
   */
  async send(text, details = {}) {
    if (this.#descriptor === undefined) return false;
    const line = statusLine(text, details);
    if (line === undefined) return false;
    // At once where there is room: the tool may be about to keep the event loop busy for long.
    if (this.#waitingLines === 0) {
      try {
        writeSync(this.#descriptor, line);
        return true;
      } catch (error) {
        if (codeOf(error) !== "EAGAIN") return false;
      }
    }
    if (this.#waitingLines === maxWaitingLines) return false;
    this.#waitingLines += 1;
    this.#last = this.#sendAfter(this.#last, line);
    return this.#last;
  }

  /** Waits until the lines that were sent so far are written. */
  async flushed() {
    await this.#last;
  }

  /** For one that has sent nothing. */
  close() {
    if (this.#descriptor !== undefined) closeSync(this.#descriptor);
    this.#descriptor = undefined;
  }

  /**
   * @param {Promise<boolean>} before
   * @param {string} line
   */
  async #sendAfter(before, line) {
    await before;
    const wasWritten = await this.#writeWaiting(line);
    this.#waitingLines -= 1;
    return wasWritten;
  }

  /**
   * @param {string} line
   * @returns {Promise<boolean>}
   */
  async #writeWaiting(line) {
    try {
      this.#waitingDescriptor ??= openWaiting(this.#path);
    } catch {
      return false;
    }
    const descriptor = this.#waitingDescriptor;
    return new NativePromise((resolve) => {
      write(descriptor, line, (error) => resolve(error === null));
    });
  }
}

/**
 * Opens a pipe for writing that waits for the reader. Node cannot make a descriptor blocking later;
 * opening it for reading, too, does not wait (fifo(7)), and while that is open, opening it for
 * writing alone does not either.
 *
 * @param {string} path
 */
function openWaiting(path) {
  const both = openSync(path, constants.O_RDWR);
  try {
    return openSync(path, constants.O_WRONLY);
  } finally {
    closeSync(both);
  }
}

/**
 * @param {string} text
 * @param {StatusDetails} details
 * @returns {string | undefined} undefined for a partial result that does not fit
 */
function statusLine(text, { partialResult, ...rest }) {
  const details = stringify({ ...rest, partial_result: partialResult });
  const line = encodeStatus(text, details);
  if (byteLength(line) <= lineMaxBytes) return line;
  if (partialResult !== undefined) return undefined;
  const alone = encodeStatus(text);
  return byteLength(alone) <= lineMaxBytes ? alone : encodeStatus(`${fitting(text)}…`);
}

/**
 * @param {string} text
 * @param {string} details JSON of an object, whose members follow the text
 */
function encodeStatus(text, details = "{}") {
  const members = details === "{}" ? "" : `, ${details.slice(1, -1)}`;
  return `{"status": ${stringify(text)}${members}}\n`;
}

/**
 * The longest beginning of a text that still leaves room for "…" in a status line.
 *
 * @param {string} text
 */
function fitting(text) {
  let room = lineMaxBytes - byteLength(encodeStatus("…"));
  let end = 0;
  // Every character takes a byte at least.
  for (const character of text.slice(0, lineMaxBytes)) {
    room -= byteLength(stringify(character)) - '""'.length;
    if (room < 0) break;
    end += character.length;
  }
  return text.slice(0, end);
}

/** @param {unknown} error */
function codeOf(error) {
  return /** @type {NodeJS.ErrnoException} */ (error).code;
}
