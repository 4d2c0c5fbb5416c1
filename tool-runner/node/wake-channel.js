/**
 * The socket to the worker of a runner that waits for its call. See tool-runner/PROTOCOL.md,
 * "Parked".
 */

// Taken before the tool is loaded, which may replace them by accident or for its tests.
const { process } = globalThis;
const { fstatSync, readSync, writeSync } = process.getBuiltinModule("node:fs");
const { alloc, byteLength, concat, from: bytesOf } = Buffer;
const { stringify } = JSON;

const callLine = /^call (\d{1,9})\n/;
const lineMaxBytes = 32;
/** What is read first. */
const first = alloc(64 * 1024);
const done = '{"done":true}\n';

/** The runner's end. No program inherits it. The tool may close it, as it may any descriptor. */
export class WakeChannel {
  #descriptor;
  #identity;

  /** @param {number} descriptor */
  constructor(descriptor) {
    this.#descriptor = descriptor;
    this.#identity = identityOf(descriptor);
  }

  /**
   * Sends the worker a line.
   *
   * @param {object} message
   */
  report(message) {
    writeSync(this.#descriptor, `${stringify(message)}\n`);
  }

  /**
   * Waits for the call, and for nothing else.
   *
   * @returns {string | undefined} its description; undefined where there will be none
   */
  takeCall() {
    return readCall((into, at) => this.#read(into, at));
  }

  /**
   * Sends the document of the call's answer.
   *
   * @param {string} document
   * @returns {boolean} false where there is no worker to take it
   */
  give(document) {
    return this.#send(concat([bytesOf(`{"result":${byteLength(document)}}\n`), bytesOf(document)]));
  }

  /**
   * Has the worker end this process, which has nothing left to do but to exit with 0. Returns where
   * there is no worker to do it.
   */
  finish() {
    if (!this.#send(bytesOf(done))) return;
    try {
      this.#read(alloc(1), 0);
    } catch {
      // The worker is gone, too.
    }
  }

  /** @param {Uint8Array} content */
  #send(content) {
    // Behind the number may be a file of the tool's by now.
    if (this.#identity === undefined || identityOf(this.#descriptor) !== this.#identity)
      return false;
    try {
      for (let rest = content; rest.length > 0;) {
        rest = rest.subarray(writeSync(this.#descriptor, rest));
      }
    } catch {
      return false;
    }
    return true;
  }

  /**
   * @param {Uint8Array} into
   * @param {number} at
   */
  #read(into, at) {
    return readSync(this.#descriptor, into, at, into.length - at, null);
  }
}

/**
 * Reads a call as the worker writes it.
 *
 * @param {(into: Uint8Array, at: number) => number} read fills from there on, as far as it can
 * @returns {string | undefined} its description; undefined where that ends before
 */
export function readCall(read) {
  let length = 0;
  while (!first.subarray(0, length).includes("\n")) {
    if (length >= lineMaxBytes) return undefined;
    const count = read(first, length);
    if (count === 0) return undefined;
    length += count;
  }
  const start = first.subarray(0, length);
  const [line, size] = callLine.exec(start.toString("latin1", 0, lineMaxBytes)) ?? [];
  if (line === undefined) return undefined;
  const description = alloc(Number(size));
  length = start.copy(description, 0, line.length);
  while (length < description.length) {
    const count = read(description, length);
    if (count === 0) return undefined;
    length += count;
  }
  return description.toString("utf8");
}

/**
 * Of an open file; undefined for a descriptor that is not open.
 *
 * @param {number} descriptor
 */
function identityOf(descriptor) {
  try {
    const { dev, ino } = fstatSync(descriptor);
    return `${dev}:${ino}`;
  } catch {
    return undefined;
  }
}
