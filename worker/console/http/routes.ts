/**
 * The requests of the console's page, by `api.ts`.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { CallDetail, CallView } from "../api.ts";
import type { OwnCalls } from "../calls/own-calls.ts";
import type { RecentCall } from "../calls/recent-call.ts";
import type { RecentCalls } from "../calls/recent-calls.ts";
import { readJsonObject } from "./body.ts";
import type { EventStreams } from "./event-streams.ts";
import { HttpError, sendJson } from "./failure.ts";
import type { Files } from "./files.ts";
import { toNewCall } from "./new-call.ts";

/** What requests read and do. */
export interface RouteParts {
  /** Whether the worker serves this tool. */
  readonly serves: (tool: string) => boolean;
  readonly calls: Pick<RecentCalls, "get">;
  readonly own: OwnCalls;
  readonly files: Files;
  /** Gets each call that the console cancels. */
  readonly onCancel: (call: CallView) => void;
}

/** Answers a request with the parts of its path. Throws HttpError. */
type Handler = (
  request: IncomingMessage,
  response: ServerResponse,
  ...parts: readonly string[]
) => Promise<void> | void;

/** Answers requests that have the token. */
export class Routes {
  readonly #parts: RouteParts;
  readonly #table: readonly (readonly [method: string, path: RegExp, handler: Handler])[];

  constructor(parts: RouteParts, streams: EventStreams) {
    this.#parts = parts;
    this.#table = [
      ["GET", /^\/api\/events$/, (_, response) => streams.open(response)],
      [
        "PUT",
        /^\/api\/inputs\/([^/]+)$/,
        (request, response, name = "") => this.#receive(decode(name), request, response),
      ],
      ["POST", /^\/api\/calls$/, (request, response) => this.#call(request, response)],
      [
        "GET",
        /^\/api\/calls\/([^/]+)$/,
        (_, response, id = "") => sendJson(response, 200, this.#detail(id)),
      ],
      [
        "POST",
        /^\/api\/calls\/([^/]+)\/cancel$/,
        (_, response, id = "") => this.#cancel(id, response),
      ],
      [
        "GET",
        /^\/api\/calls\/([^/]+)\/artifacts\/(\d{1,4})$/,
        (_, response, id = "", number = "") => this.#sendArtifact(id, Number(number), response),
      ],
    ];
  }

  /** Throws HttpError. */
  async answer(path: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    for (const [method, pattern, handler] of this.#table) {
      const match = method === request.method ? pattern.exec(path) : null;
      if (match !== null) return await handler(request, response, ...match.slice(1));
    }
    throw notFound();
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
      throw new HttpError(503, "RESOURCE_EXHAUSTED", "The console has too many open calls");
    sendJson(response, 201, { id });
  }

  #cancel(id: string, response: ServerResponse): void {
    const call = this.#known(id);
    if (!call.cancel())
      throw new HttpError(409, "NOT_RUNNING", "The tool of this call does not run any more");
    this.#parts.onCancel(call.view);
    response.writeHead(202).end();
  }

  #detail(id: string): CallDetail {
    const { view: call, statuses, output } = this.#known(id);
    const { request = null, answer = null, artifacts = [] } = this.#parts.own.get(id) ?? {};
    return { call, statuses, output, request, answer, artifacts };
  }

  async #sendArtifact(id: string, number: number, response: ServerResponse): Promise<void> {
    const artifact = this.#parts.own.get(id)?.artifacts[number];
    if (artifact === undefined) throw notFound();
    await this.#parts.files.send(artifact, response, closing(response));
  }

  #known(id: string): RecentCall {
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
