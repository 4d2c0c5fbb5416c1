/**
 * Servers of HTTP/1.1 for connections of sandboxes, strict and bounded.
 */
import { type Server, createServer } from "node:http";
import { maxHeaderBytes } from "./http-forward.ts";

/** Milliseconds for the headers of a request, and for what comes before it. */
export const headersTimeoutMs = 10_000;

/** How often that is looked at. */
const checkMs = 1_000;

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
