/**
 * The server of the console: a page, and the requests of `api.ts`.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Clock } from "../../support/clock.ts";
import type { CallDetail, WorkerView } from "../api.ts";
import type { OwnCalls } from "../calls/own-calls.ts";
import type { RecentCalls } from "../calls/recent-calls.ts";
import type { Samples } from "../samples.ts";
import { readJsonObject } from "./body.ts";
import { EventStreams } from "./event-streams.ts";
import { HttpError, sendFailure, sendJson } from "./failure.ts";
import type { Files } from "./files.ts";
import { Guard, sessionCookie } from "./guard.ts";
import { toNewCall } from "./new-call.ts";
import { type Page, commonHeaders } from "./page.ts";

/** An `import` would load `fetch` and `WebSocket`, too. */
const { createServer } = process.getBuiltinModule("node:http");

/** Connections at once: a page has up to six. */
const maxConnections = 128;
/** Milliseconds for the head of a request. */
const headersTimeoutMs = 10_000;
/** Milliseconds for a request with its body. */
const requestTimeoutMs = 300_000;

/** What the server shows and does. */
export interface ServerParts {
  readonly page: Page;
  readonly view: () => WorkerView;
  /** Whether the worker serves this tool. */
  readonly serves: (tool: string) => boolean;
  readonly calls: RecentCalls;
  readonly own: OwnCalls;
  readonly samples: Samples;
  readonly files: Files;
  readonly clock: Clock;
  /** Told of errors that are no refusals. */
  readonly onError: (error: unknown) => void;
}

/** Where it listens, and for whom. */
export interface ServerOptions {
  readonly host: string;
  readonly port: number;
  readonly token: string;
  /** Whether `host` is an address that only this machine reaches. */
  readonly isLocal: boolean;
}

/** Its owner disposes it, which ends all connections. */
export interface ConsoleServer extends AsyncDisposable {
  readonly port: number;
  /** Tells open pages of the worker's state where it has changed. */
  tellState(): void;
}

/** Listens. Rejects when address and port cannot be had. */
export async function startConsoleServer(
  { host, port, token, isLocal }: ServerOptions,
  parts: ServerParts,
): Promise<ConsoleServer> {
  const guard = new Guard({ token, isLocal, clock: parts.clock });
  const streams = new EventStreams(parts);
  const routes = new Routes(parts, guard, streams);
  const limits = { headersTimeout: headersTimeoutMs, requestTimeout: requestTimeoutMs };
  const server = createServer(limits, (request, response) => {
    routes.answer(request, response).catch((error: unknown) => {
      if (error instanceof HttpError) return sendFailure(response, error);
      if (!response.destroyed) parts.onError(error);
      const failure = new HttpError(500, "INTERNAL_ERROR", "The console failed; see the log");
      sendFailure(response, failure);
    });
  });
  server.maxConnections = maxConnections;
  const listening = Promise.withResolvers<void>();
  server.once("error", listening.reject);
  server.listen(port, host, listening.resolve);
  await listening.promise;
  server.off("error", listening.reject);
  server.on("error", parts.onError);
  const address = server.address();
  return {
    port: typeof address === "object" && address !== null ? address.port : port,
    tellState: () => streams.tellState(),
    [Symbol.asyncDispose]: async () => {
      streams[Symbol.dispose]();
      const closed = Promise.withResolvers<void>();
      server.close(() => closed.resolve());
      server.closeAllConnections();
      await closed.promise;
    },
  };
}

class Routes {
  readonly #parts: ServerParts;
  readonly #guard: Guard;
  readonly #streams: EventStreams;

  constructor(parts: ServerParts, guard: Guard, streams: EventStreams) {
    this.#parts = parts;
    this.#guard = guard;
    this.#streams = streams;
  }

  /** Throws HttpError. */
  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    for (const [name, value] of Object.entries(commonHeaders)) response.setHeader(name, value);
    this.#guard.checkOrigin(request);
    const path = (request.url ?? "").replace(/\?.*/s, "");
    if (this.#parts.page.serve(path, request, response)) return;
    const [, api, resource = "", id = "", part = "", number = ""] = path.split("/");
    if (api !== "api") throw notFound();
    const asked = `${request.method} ${resource}${id && "/ID"}${part && `/${part}`}${number && "/N"}`;
    if (asked === "POST session") return this.#logIn(request, response);
    this.#guard.requireSession(request);
    switch (asked) {
      case "DELETE session":
        this.#guard.logOut(request);
        response.writeHead(204, { "Set-Cookie": sessionCookie(request, "") }).end();
        return;
      case "GET events":
        return this.#streams.open(response);
      case "PUT inputs/ID":
        return this.#receive(decode(id), request, response);
      case "POST calls":
        return this.#call(request, response);
      case "GET calls/ID":
        return sendJson(response, 200, this.#detail(id));
      case "POST calls/ID/cancel":
        return this.#cancel(id, response);
      case "GET calls/ID/artifacts/N":
        return this.#sendArtifact(id, number, response);
      default:
        throw notFound();
    }
  }

  async #logIn(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { token } = await readJsonObject(request);
    const session = this.#guard.logIn(typeof token === "string" ? token : "");
    response.writeHead(204, { "Set-Cookie": sessionCookie(request, session) }).end();
  }

  async #receive(
    filename: string,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const input = await this.#parts.files.receive(filename, request, closing(response));
    sendJson(response, 201, input);
  }

  async #call(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const call = toNewCall(await readJsonObject(request));
    if (!this.#parts.serves(call.tool))
      throw new HttpError(404, "TOOL_NOT_AVAILABLE", "This worker does not serve the tool");
    const id = this.#parts.own.make(call);
    if (id === undefined)
      throw new HttpError(503, "RESOURCE_EXHAUSTED", "The worker takes no more calls now");
    sendJson(response, 201, { id });
  }

  #cancel(id: string, response: ServerResponse): void {
    if (!this.#known(id).cancel())
      throw new HttpError(409, "NOT_RUNNING", "The call does not run any more");
    response.writeHead(202).end();
  }

  #detail(id: string): CallDetail {
    const { own } = this.#parts;
    const { view: call, statuses, output } = this.#known(id);
    const { request = null, answer = null } = own.get(id) ?? {};
    return { call, statuses, output, request, answer, artifacts: own.artifactsOf(id) };
  }

  async #sendArtifact(id: string, number: string, response: ServerResponse): Promise<void> {
    const artifact = this.#parts.own.artifactsOf(id)[Number(number)];
    if (artifact === undefined) throw notFound();
    await this.#parts.files.send(artifact, response, closing(response));
  }

  #known(id: string) {
    const call = this.#parts.calls.get(id);
    if (call === undefined) throw notFound();
    return call;
  }
}

function notFound(): HttpError {
  return new HttpError(404, "NOT_FOUND", "There is nothing of that name, or no longer");
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw new HttpError(400, "BAD_REQUEST", "The name is not percent-encoded UTF-8");
  }
}

/** Aborts when the connection closes before the answer is complete. */
function closing(response: ServerResponse): AbortSignal {
  const closed = new AbortController();
  response.once("close", () => closed.abort(new Error("the connection was closed")));
  return closed.signal;
}
