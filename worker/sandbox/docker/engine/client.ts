/**
 * Requests to a container engine: the Docker Engine API over its unix socket, which podman serves,
 * too.
 */
import { type ClientRequest, type IncomingMessage, request as httpRequest } from "node:http";
import type { Duplex } from "node:stream";
import { type Json, isJsonObject, parseJson } from "../../../support/json/json.ts";
import type { Clock } from "../../../support/clock.ts";
import { withTimeout } from "../../../support/timeout.ts";
import { SandboxError } from "../../sandbox.ts";

/** The first version with all that is used here: Docker 20.10, podman 3. */
const apiVersion = "v1.41";
/** Milliseconds of a request; an engine that starts many containers takes seconds. */
export const requestTimeoutMs = 60_000;
/** Bytes of an answer; the list of many hundred containers has fewer. */
export const maxAnswerBytes = 4 * 1024 * 1024;
/** Characters of the engine's own message in an error. */
const maxMessageLength = 1_000;
const firstFailure = 400;

/** An answer that refuses a request. */
export class EngineError extends SandboxError {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.name = "EngineError";
    this.status = status;
  }
}

/** One request. */
export interface EngineRequest {
  readonly method: "GET" | "POST" | "DELETE";
  /** Behind the version, with its query. */
  readonly path: string;
  /** JSON, or an archive. */
  readonly body?: object | Uint8Array;
}

/** Sends requests, each on a connection of its own. */
export class EngineClient {
  readonly #socketPath: string;
  readonly #clock: Pick<Clock, "sleep">;

  constructor(socketPath: string, clock: Pick<Clock, "sleep">) {
    this.#socketPath = socketPath;
    this.#clock = clock;
  }

  /**
   * The answer's JSON, or its text where it is none. Rejects with EngineError, with SandboxError,
   * and with the signal's reason.
   */
  async ask(
    request: EngineRequest,
    signal: AbortSignal,
    timeoutMs: number = requestTimeoutMs,
  ): Promise<Json> {
    return withTimeout(timeoutMs, this.#clock, signal, async (over) => {
      try {
        return await this.askUnbounded(request, over);
      } catch (error) {
        signal.throwIfAborted();
        if (over.aborted) throw this.#failure(request, over.reason);
        throw error;
      }
    });
  }

  /** The same for as long as the engine takes. */
  async askUnbounded(request: EngineRequest, signal: AbortSignal): Promise<Json> {
    signal.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<Json>();
    const sent = this.#send(request, {}, signal);
    sent.once("error", reject);
    sent.once("response", (response) => void read(response, request).then(resolve, reject));
    try {
      return await promise;
    } catch (error) {
      signal.throwIfAborted();
      throw error instanceof SandboxError ? error : this.#failure(request, error);
    }
  }

  /**
   * A connection that the engine hands over: bytes in both directions. The caller destroys it.
   * Rejects as `ask` does.
   */
  async hijack(request: EngineRequest, signal: AbortSignal): Promise<Duplex> {
    const upgrade = { Connection: "Upgrade", Upgrade: "tcp" };
    return withTimeout(requestTimeoutMs, this.#clock, signal, async (over) => {
      const { promise, resolve, reject } = Promise.withResolvers<Duplex>();
      // The signal would end the connection, too, which outlives this request.
      const sent = this.#send(request, upgrade);
      const abort = (): void => void sent.destroy(over.reason as Error);
      over.addEventListener("abort", abort, { once: true });
      sent.once("error", (error) => reject(this.#failure(request, error)));
      sent.once("response", (response) => {
        const refused = new EngineError(response.statusCode ?? 0, "the engine hands over nothing");
        void read(response, request).then(() => reject(refused), reject);
      });
      sent.once("upgrade", (_response, socket, head) => {
        socket.pause().unshift(head);
        // The end of the command is reported by its exit.
        socket.on("error", () => undefined);
        resolve(socket);
      });
      try {
        return await promise;
      } catch (error) {
        signal.throwIfAborted();
        throw error;
      } finally {
        over.removeEventListener("abort", abort);
      }
    });
  }

  #send(
    { method, path, body }: EngineRequest,
    headers: Readonly<Record<string, string>>,
    signal?: AbortSignal,
  ): ClientRequest {
    const isArchive = body instanceof Uint8Array;
    const content = isArchive ? body : body && JSON.stringify(body);
    const type = isArchive ? "application/x-tar" : "application/json";
    const sent = httpRequest({
      socketPath: this.#socketPath,
      method,
      path: `/${apiVersion}${path}`,
      agent: false,
      headers: {
        Host: "docker",
        ...headers,
        ...(content !== undefined && {
          "Content-Type": type,
          "Content-Length": Buffer.byteLength(content),
        }),
      },
      ...(signal && { signal }),
    });
    return sent.end(content);
  }

  #failure({ method, path }: EngineRequest, error: unknown): SandboxError {
    const [name] = path.split("?");
    return new SandboxError(`${method} ${name} at the engine ${this.#socketPath} failed`, {
      cause: error,
      setting: "dockerSocket",
    });
  }
}

/** Rejects with EngineError for a refusal, and for too long an answer. */
async function read(response: IncomingMessage, { path }: EngineRequest): Promise<Json> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.byteLength;
    if (bytes > maxAnswerBytes) {
      response.destroy();
      throw new SandboxError(`the engine's answer has more than ${maxAnswerBytes} bytes`);
    }
    chunks.push(chunk);
  }
  const content = Buffer.concat(chunks);
  const status = response.statusCode ?? 0;
  const value = valueOf(content);
  if (status < firstFailure) return value;
  const text = messageOf(value).trim().slice(0, maxMessageLength);
  throw new EngineError(status, `the engine refused ${path.split("?")[0]} (${status}): ${text}`);
}

function valueOf(content: Buffer): Json {
  try {
    return parseJson(content);
  } catch {
    return content.toString("utf8");
  }
}

function messageOf(value: Json): string {
  if (typeof value === "string") return value;
  return isJsonObject(value) && typeof value["message"] === "string" ? value["message"] : "";
}
