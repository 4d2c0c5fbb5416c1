/**
 * Refusals of the console's server.
 */
import type { ServerResponse } from "node:http";
import type { Failure } from "../api.ts";

/** A request that is refused. The message is for the page, the cause for the log. */
export class HttpError extends Error {
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, message: string, options?: { cause: unknown }) {
    super(message, options);
    this.name = "HttpError";
    this.status = status;
    this.code = code;
  }
}

/** Errors of streams whose other end has gone. */
const disconnections: ReadonlySet<unknown> = new Set([
  "ABORT_ERR",
  "ECONNRESET",
  "ERR_STREAM_PREMATURE_CLOSE",
]);

/** Whether the page has ended the request. */
export function isDisconnection(error: unknown): boolean {
  return error instanceof Error && "code" in error && disconnections.has(error.code);
}

/** Answers with JSON. */
export function sendJson(response: ServerResponse, status: number, body: object): void {
  const text = JSON.stringify(body);
  response.writeHead(status, { "Content-Type": "application/json" }).end(text);
}

/** Answers with a refusal; ends an answer that has started. */
export function sendFailure(response: ServerResponse, { status, code, message }: HttpError): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const body: Failure = { error: { code, message } };
  // The rest of the request is not read.
  response.setHeader("Connection", "close");
  sendJson(response, status, body);
}
