/**
 * Servers of HTTP/1.1 for connections of sandboxes, strict and bounded.
 */
import { type IncomingMessage, STATUS_CODES, type Server, createServer } from "node:http";
import type { RefusalReason } from "../protocol/execution.ts";
import { maxHeaderBytes } from "./http-forward.ts";

/** Milliseconds for the headers of a request, and for what comes before it. */
export const headersTimeoutMs = 10_000;

/** Milliseconds between two checks of that time. */
const checkMs = 1_000;

/** Headers that give a request's end and host. `Connection` must not name them. */
const framing = ["content-length", "transfer-encoding", "host"];

/** What is read of a request. */
export type RequestHead = Pick<
  IncomingMessage,
  "httpVersion" | "headers" | "rawHeaders" | "method" | "url"
>;

/** A request that is not sent on; the message is for its sender. */
export class BadRequestError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "BadRequestError";
  }
}

/**
 * A server that never listens: its connections come by the event `connection`. They end without a
 * byte for `idleMs`; a body may take longer. It closes when the signal aborts.
 */
export function createStrictServer(idleMs: number, signal: AbortSignal): Server {
  const server = createServer({
    ...{ maxHeaderSize: maxHeaderBytes, insecureHTTPParser: false, requireHostHeader: true },
    ...{ headersTimeout: headersTimeoutMs, requestTimeout: 0 },
    connectionsCheckingInterval: checkMs,
  });
  server.timeout = idleMs;
  server.keepAliveTimeout = idleMs;
  // From this event on it looks at the times of connections.
  server.emit("listening");
  signal.addEventListener("abort", () => server.close());
  return server;
}

/** The text of a status line, which is all that many programs report of a refusal. */
export function statusMessage(status: number, reason: RefusalReason | undefined): string {
  const usual = STATUS_CODES[status] ?? "";
  return reason === undefined ? usual : `${usual} (${reason})`;
}

/**
 * What the parser lets through: headers of the message that would not go on, a version that no
 * request has in this form, and a body that does not end at one place for every reader (RFC 9112,
 * section 6.3). Throws BadRequestError.
 */
export function checkMessage({ headers, httpVersion }: RequestHead): void {
  if (httpVersion !== "1.1" && httpVersion !== "1.0")
    throw new BadRequestError("the only versions are HTTP/1.1 and HTTP/1.0");
  const named = (headers.connection ?? "").toLowerCase().split(/[\s,]+/);
  if (named.some((name) => framing.includes(name)))
    throw new BadRequestError("Connection names what belongs to the message");
  const encoding = headers["transfer-encoding"];
  if (encoding === undefined) return;
  if (encoding.toLowerCase() !== "chunked" || httpVersion !== "1.1")
    throw new BadRequestError("the only Transfer-Encoding is chunked, in HTTP/1.1");
  if (headers["content-length"] !== undefined)
    throw new BadRequestError("Content-Length beside Transfer-Encoding");
}

/** The texts of all headers Host of a request. */
export function hostHeadersOf({ rawHeaders }: Pick<RequestHead, "rawHeaders">): readonly string[] {
  return rawHeaders.filter(
    (_, index) => index % 2 === 1 && rawHeaders[index - 1]?.toLowerCase() === "host",
  );
}
