/**
 * Forwards one request of HTTP/1.1 from a sandbox to its host.
 */
import { type Agent, type IncomingMessage, type ServerResponse, request } from "node:http";
import { pipeline } from "node:stream/promises";
import { pump } from "../support/streams/pump.ts";

/** Bytes of the headers of a request or a response. */
export const maxHeaderBytes = 32 * 1024;

/** Headers of one connection, which the next one does not get: RFC 9110, section 7.6.1. */
const connectionHeaders = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** A header's name and value. */
export type Header = readonly [name: string, value: string];

/** A request to forward. */
export interface Forwarding {
  /** The received request; its body is read from it. */
  readonly incoming: IncomingMessage;
  readonly response: ServerResponse;
  /** Path and query. */
  readonly target: string;
  /** Those of {@link endToEndHeaders}, with changes. */
  readonly headers: readonly Header[];
  /** Connects to the host. Its error is thrown as it is. */
  readonly agent: Agent;
  readonly signal: AbortSignal;
  /** Replaces in a header of the answer what the worker added to the request. */
  readonly hide?: (text: string) => string;
}

/** Headers that go on, without those of the connection. */
export function endToEndHeaders(rawHeaders: readonly string[]): readonly Header[] {
  const headers = Array.from({ length: rawHeaders.length / 2 }, (_, index) => {
    return [rawHeaders[2 * index] ?? "", rawHeaders[2 * index + 1] ?? ""] as const;
  });
  const named = headers
    .filter(([name]) => name.toLowerCase() === "connection")
    .flatMap(([, value]) => value.split(",").map((name) => name.trim().toLowerCase()));
  const dropped = new Set([...connectionHeaders, "expect", ...named]);
  return headers.filter(([name]) => !dropped.has(name.toLowerCase()));
}

/**
 * Sends a request and its response, each as fast as the other side reads. Throws what the agent
 * throws, as long as nothing of a response was sent; else ends the connection.
 */
export async function forward(forwarding: Forwarding): Promise<void> {
  const { incoming, response, target, agent, signal, hide = (text) => text } = forwarding;
  const { isChunked, length } = framingOf(incoming);
  const headers = forwarding.headers.filter(([name]) => name.toLowerCase() !== "content-length");
  if (isChunked) headers.push(["Transfer-Encoding", "chunked"]);
  else if (length !== undefined) headers.push(["Content-Length", length]);
  const outgoing = request({
    ...{ agent, signal, path: target, setHost: false, maxHeaderSize: maxHeaderBytes },
    method: incoming.method ?? "GET",
    headers: headers.flat(),
  });
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  outgoing.once("response", resolve);
  outgoing.on("error", reject);
  // Without an error where the host changes the protocol.
  outgoing.once("close", () => reject(new Error("the host did not answer")));
  // Without a frame around it the host would take a body for the next request.
  if (isChunked || length !== undefined) pump(incoming, outgoing);
  else outgoing.end();
  incoming.once("error", reject);
  // A host may answer before it has read all.
  const answer = await promise;
  const { statusCode = 502, statusMessage = "", rawHeaders } = answer;
  try {
    const shown = endToEndHeaders(rawHeaders).map(([name, value]) => [name, hide(value)]);
    response.writeHead(statusCode, hide(statusMessage), shown.flat());
    await pipeline(answer, response);
  } catch {
    response.destroy();
  } finally {
    if (!outgoing.writableFinished) outgoing.destroy();
  }
}

/** How the body of a request ends; neither for one without. */
function framingOf({ headers }: IncomingMessage): {
  readonly isChunked: boolean;
  readonly length: string | undefined;
} {
  const isChunked = headers["transfer-encoding"] !== undefined;
  return { isChunked, length: isChunked ? undefined : headers["content-length"] };
}
