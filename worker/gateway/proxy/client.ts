/**
 * The program's end of a channel, for programs in this language and for tests.
 */
import type { Duplex } from "node:stream";
import type { JsonObject } from "../../support/json/json.ts";
import { Semaphore } from "../../support/semaphore.ts";
import { abortable } from "../../support/timeout.ts";
import {
  type ArtifactPiece,
  type ChainResult,
  type ChainStep,
  type DetailLevel,
  GatewayError,
  type PieceRequest,
  type ProgramGateway,
  type RunResult,
  type ToolDoc,
  type ToolSummary,
  invalid,
} from "../gateway.ts";
import type { ToolExample } from "../../protocol/tool-calls/example.ts";
import { defaultGatewayLimits } from "../../protocol/tool-calls/limits.ts";
import {
  encodeFrame,
  maxAnswerBytes,
  maxRequestBytes,
  maxUnsentBytes,
  parseFrame,
  readFrames,
  sentBelow,
} from "./frames.ts";
import {
  type AnswerPayload,
  type ProgramRequest,
  type RequestPayload,
  type RequestType,
  answerPayloads,
  readProgramMessage,
  workerMessage,
} from "./messages.ts";

/** The worker bounded its answers when it made them. */
const unbounded = { depth: Infinity, values: Infinity };

interface Pending {
  resolve(payload: JsonObject): void;
  reject(error: GatewayError): void;
}

export interface ClientOptions {
  /** Calls at a time; others wait here, where an abort costs nothing. The default is the host's. */
  readonly maxConcurrentCalls?: number;
}

/** Owns the channel. */
export class ProxyClient implements ProgramGateway, AsyncDisposable {
  readonly #channel: Duplex;
  readonly #calls: Semaphore;
  readonly #pending = new Map<string, Pending>();
  readonly #reading: Promise<void>;
  #lastId = 0;
  #closed: GatewayError | undefined;

  constructor(channel: Duplex, options: ClientOptions = {}) {
    this.#channel = channel;
    const capacity = options.maxConcurrentCalls ?? defaultGatewayLimits.maxConcurrentCalls;
    // Each caller waits for its own call.
    this.#calls = new Semaphore({ capacity, maxWaiting: Infinity });
    channel.on("error", () => undefined);
    this.#reading = this.#read();
  }

  async searchTools(
    query: string,
    limit: number,
    signal: AbortSignal,
  ): Promise<readonly ToolSummary[]> {
    return (await this.#ask("search_tools", { query, limit }, signal)).results;
  }

  async listNamespaces(signal: AbortSignal): Promise<readonly string[]> {
    return (await this.#ask("list_namespaces", {}, signal)).namespaces;
  }

  async describeTool(id: string, level: DetailLevel, signal: AbortSignal): Promise<ToolDoc> {
    return this.#ask("describe_tool", { id, level }, signal);
  }

  async listToolExamples(
    id: string,
    max: number,
    signal: AbortSignal,
  ): Promise<readonly ToolExample[]> {
    return (await this.#ask("list_tool_examples", { id, max }, signal)).examples;
  }

  async runTool(id: string, args: JsonObject, signal: AbortSignal): Promise<RunResult> {
    using _permit = await this.#calls.acquire(signal);
    return await this.#ask("run_tool", { id, args }, signal);
  }

  async runChain(steps: readonly ChainStep[], signal: AbortSignal): Promise<ChainResult> {
    using _permit = await this.#calls.acquire(signal);
    return await this.#ask("run_chain", { steps: [...steps] }, signal);
  }

  async loadArtifact(piece: PieceRequest, signal: AbortSignal): Promise<ArtifactPiece> {
    const { content, ...facts } = await this.#ask("load_artifact", { ...piece }, signal);
    return { bytes: Buffer.from(content, "base64"), ...facts };
  }

  /** Closes the channel: operations reject with `GATEWAY_CLOSED`. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#close("the program closed it");
    await this.#reading;
  }

  async #ask<Type extends RequestType>(
    type: Type,
    payload: RequestPayload<Type>,
    signal: AbortSignal,
  ): Promise<AnswerPayload<Type>> {
    signal.throwIfAborted();
    this.#throwIfClosed();
    const id = String(++this.#lastId);
    const line = requestLine({ type, id, payload } as ProgramRequest);
    // Else requests that are aborted again and again would gather in front of a slow worker.
    await sentBelow(maxUnsentBytes, this.#channel, signal);
    this.#throwIfClosed();
    const { promise, resolve, reject } = Promise.withResolvers<JsonObject>();
    this.#pending.set(id, { resolve, reject });
    this.#channel.write(line);
    try {
      const answer = await abortable(promise, signal);
      const { data, error } = answerPayloads[type].safeParse(answer);
      if (data === undefined) throw closedBy("an answer cannot be read", error);
      return data as AnswerPayload<Type>;
    } finally {
      if (this.#pending.has(id) && this.#closed === undefined) {
        this.#channel.write(encodeFrame({ type: "cancel", id }));
      }
    }
  }

  #throwIfClosed(): void {
    if (this.#closed !== undefined) throw this.#closed;
  }

  async #read(): Promise<void> {
    try {
      for await (const frame of readFrames(this.#channel, maxAnswerBytes, unbounded)) {
        this.#answered(frame);
      }
      this.#close("the worker closed it");
    } catch (error) {
      this.#close("the connection to the worker was lost", error);
    }
  }

  #answered(frame: JsonObject): void {
    const message = workerMessage.parse(frame);
    const pending = this.#pending.get(message.id);
    this.#pending.delete(message.id);
    if (message.type === "response") return pending?.resolve(message.payload);
    const { error, code, op, ...options } = message.payload;
    pending?.reject(new GatewayError(code, op, error, options));
  }

  #close(reason: string, cause?: unknown): void {
    if (this.#closed !== undefined) return;
    this.#closed = closedBy(reason, cause);
    this.#channel.destroy();
    for (const { reject } of this.#pending.values()) reject(this.#closed);
    this.#pending.clear();
  }
}

/** Throws `INVALID_REQUEST` for what the worker would close the channel for. */
function requestLine(request: ProgramRequest): Buffer {
  const line = encodeRequest(request);
  const sizeBytes = line.byteLength - 1;
  if (sizeBytes <= maxRequestBytes) return line;
  const message = `The request has ${sizeBytes} bytes; at most ${maxRequestBytes} can be sent`;
  throw new GatewayError("RESOURCE_EXHAUSTED", "validate_input", message, { retryable: false });
}

function encodeRequest(request: ProgramRequest): Buffer {
  try {
    const line = encodeFrame(request);
    readProgramMessage(parseFrame(line));
    return line;
  } catch (error) {
    throw invalid("The request has wrong arguments, or some that are not JSON", error);
  }
}

function closedBy(reason: string, cause?: unknown): GatewayError {
  const message = `The channel to the worker is closed: ${reason}`;
  return new GatewayError("GATEWAY_CLOSED", "execute", message, { cause });
}
