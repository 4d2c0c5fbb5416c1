/**
 * The channel to the worker's gateway. See tool-runner/PROTOCOL.md, "Tools of a program".
 */
import { Socket, connect } from "node:net";
import { ToolCallError } from "../context.js";
import { encode } from "../json.js";
import { CallQueue } from "./calls.js";

/** @import { ToolCallErrorDetails } from "../tool.js" */

/** Bytes of a request's line; the worker closes the channel at a longer one. */
const requestMaxBytes = 1024 * 1024;
/** Values of a request, for the same reason. */
const requestMaxValues = 250_000;
/** Bytes of an answer's line. */
const answerMaxBytes = 32 * 1024 * 1024;
/** Bytes of an answer that are read at once. */
const readBytes = 64 * 1024;
const callTypes = ["run_tool", "run_chain"];
const newline = "\n".charCodeAt(0);

/** @typedef {Record<string, unknown>} Payload */
/** @typedef {{ type: "response" | "error", payload: Payload }} Answer */
/**
 * A request without an answer.
 *
 * @typedef {{ resolve: (answer: Answer) => void, reject: (reason: unknown) => void }} Pending
 */

/** @type {Answer} */
const closed = {
  type: "error",
  payload: { code: "GATEWAY_CLOSED", error: "The channel to the worker's gateway is closed" },
};

/** Sends requests and receives their answers, in any order. Owns the socket. */
export class Channel {
  #socket;
  /** @type {Map<string, Pending>} by the request's id */
  #pending = new Map();
  #calls;
  #lastId = 0;
  /** The line that arrives, in pieces: joined once, when it is complete. */
  #pieces = /** @type {Buffer[]} */ ([]);
  #piecesBytes = 0;
  #isClosed = false;
  #isAbandoned = false;

  /**
   * @param {number | string} place a stream socket, or the path of one to connect to
   * @param {number} maxConcurrentCalls calls without an answer on the channel
   */
  constructor(place, maxConcurrentCalls) {
    this.#calls = new CallQueue(maxConcurrentCalls);
    // Read into one buffer, which is quicker than by events: most answers are small.
    const onread = { buffer: Buffer.allocUnsafeSlow(readBytes), callback: this.#onRead.bind(this) };
    this.#socket =
      typeof place === "string"
        ? connect({ path: place, onread })
        : new Socket({ fd: place, readable: true, writable: true, onread });
    this.#socket.on("error", () => this.#close());
    this.#socket.on("close", () => this.#close());
    this.#socket.unref();
  }

  /**
   * Resolves with the payload of the response. Rejects with ToolCallError, with a NotJson error for
   * a payload that JSON cannot express, and with the signal's reason once it aborts. Never settles
   * after `abandon`.
   *
   * @param {string} type
   * @param {Payload} payload
   * @param {AbortSignal} [signal]
   * @returns {Promise<Payload>}
   */
  async request(type, payload, signal) {
    signal?.throwIfAborted();
    if (this.#isAbandoned) return new Promise(() => {});
    const id = `${(this.#lastId += 1)}`;
    const line = `{"type":"${type}","id":"${id}","payload":${encode(payload)}}\n`;
    checkSize(line);
    if (this.#isClosed) throw errorOf(closed.payload);
    /** @type {PromiseWithResolvers<Answer>} */
    const { promise, resolve, reject } = Promise.withResolvers();
    const cancel = () => {
      if (this.#cancelled(id)) reject(signal?.reason);
    };
    this.#pending.set(id, { resolve, reject });
    // A process that waits for nothing but an answer lives on.
    this.#socket.ref();
    const send = () => void this.#socket.write(line);
    if (callTypes.includes(type)) this.#calls.enter(id, send);
    else send();
    signal?.addEventListener("abort", cancel, { once: true });
    try {
      const answer = await promise;
      // Made here, the error has the stack of the caller.
      if (answer.type === "error") throw errorOf(answer.payload);
      return answer.payload;
    } finally {
      signal?.removeEventListener("abort", cancel);
    }
  }

  /** Cancels all requests without an answer and sends no others. None of them settles then. */
  abandon() {
    this.#isAbandoned = true;
    for (const id of [...this.#pending.keys()]) this.#cancelled(id);
  }

  /**
   * Tells the worker of a request that nothing waits for. False for one that is settled already.
   *
   * @param {string} id
   */
  #cancelled(id) {
    if (this.#settled(id) === undefined) return false;
    if (!this.#calls.withdraw(id)) this.#socket.write(`{"type":"cancel","id":"${id}"}\n`);
    return true;
  }

  /**
   * Takes a request from those without an answer; undefined for an unknown id, which is that of a
   * cancelled request.
   *
   * @param {string} id
   */
  #settled(id) {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    if (this.#pending.size === 0) this.#socket.unref();
    return pending;
  }

  /**
   * Takes what has been read. False when nothing more is to be read.
   *
   * @param {number} sizeBytes
   * @param {Buffer} buffer that the next read fills again
   */
  #onRead(sizeBytes, buffer) {
    let rest = buffer.subarray(0, sizeBytes);
    for (let end = rest.indexOf(newline); end >= 0; end = rest.indexOf(newline)) {
      const last = rest.subarray(0, end);
      const line = this.#pieces.length === 0 ? last : Buffer.concat([...this.#pieces, last]);
      this.#pieces = [];
      this.#piecesBytes = 0;
      rest = rest.subarray(end + 1);
      if (!this.#onLine(line)) return this.#close();
    }
    if (rest.length > 0) this.#pieces.push(Buffer.from(rest));
    this.#piecesBytes += rest.length;
    return this.#piecesBytes <= answerMaxBytes || this.#close();
  }

  /**
   * Settles the request that a line answers. False for what is no answer.
   *
   * @param {Buffer} line
   */
  #onLine(line) {
    let message;
    try {
      message = JSON.parse(line.toString("utf8"));
    } catch {
      return false;
    }
    const { type, id, payload } = Object(message);
    if (typeof payload !== "object" || payload === null) return false;
    if (type !== "response" && type !== "error") return false;
    this.#settled(id)?.resolve({ type, payload });
    this.#calls.answered(id);
    return true;
  }

  /** Always false: nothing more is to be read. */
  #close() {
    if (this.#isClosed) return false;
    this.#isClosed = true;
    this.#socket.destroy();
    for (const id of [...this.#pending.keys()]) this.#settled(id)?.resolve(closed);
    return false;
  }
}

/**
 * @param {string} line
 * @throws {ToolCallError} INVALID_REQUEST
 */
function checkSize(line) {
  const sizeBytes = Buffer.byteLength(line);
  if (sizeBytes > requestMaxBytes) {
    const text = `The request has ${sizeBytes} bytes, more than the ${requestMaxBytes} that are accepted`;
    throw new ToolCallError("INVALID_REQUEST", text);
  }
  // Each value takes a character at least.
  if (line.length > requestMaxValues && valuesIn(line) > requestMaxValues) {
    const text = `The request has more than the ${requestMaxValues} values that are accepted`;
    throw new ToolCallError("INVALID_REQUEST", text);
  }
}

/**
 * Values of a JSON text, as the worker bounds them: commas and containers.
 *
 * @param {string} json
 */
function valuesIn(json) {
  let values = 1;
  let isText = false;
  for (let index = 0; index < json.length; index += 1) {
    const character = json[index];
    if (character === '"') isText = !isText;
    else if (isText && character === "\\") index += 1;
    else if (!isText && (character === "," || character === "{" || character === "[")) values += 1;
  }
  return values;
}

/** @param {Payload} payload of an error */
function errorOf({ code, error, ...details }) {
  const { retryable, data, op, stepResults } = /** @type {ToolCallErrorDetails} */ (details);
  return new ToolCallError(`${code}`, `${error}`, { retryable, data, op, stepResults });
}
