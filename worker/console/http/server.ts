/**
 * The server of the console: a page for all, and requests for those that have the token.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { EventStreams, type StreamParts } from "./event-streams.ts";
import { HttpError, isDisconnection, sendFailure } from "./failure.ts";
import { requireToken } from "./guard.ts";
import { type Page, commonHeaders } from "./page.ts";
import { type RouteParts, Routes } from "./routes.ts";

/** An `import` would load `fetch` and `WebSocket`, too. */
const { createServer } = process.getBuiltinModule("node:http");

const limits = {
  /** Milliseconds for the head of a request, and between two checks of that. */
  headersTimeout: 5_000,
  connectionsCheckingInterval: 1_000,
  /** Milliseconds for a request with its body, which is read only after the token. */
  requestTimeout: 3_600_000,
};
/** Connections at once: a page has up to six. */
const maxConnections = 128;

/** What the server shows and does. */
export interface ServerParts extends RouteParts, StreamParts {
  readonly page: Page;
  readonly calls: RouteParts["calls"] & StreamParts["calls"];
  /** Gets causes of answers from 500 on. */
  readonly onError: (error: unknown) => void;
}

/** Where it listens, and for whom. */
export interface ServerOptions {
  readonly host: string;
  readonly port: number;
  readonly token: string;
}

/** Its owner disposes it, which ends all connections. */
export interface ConsoleServer extends AsyncDisposable {
  readonly port: number;
}

/** Listens. Rejects when address and port cannot be had. */
export async function startConsoleServer(
  { host, port, token }: ServerOptions,
  parts: ServerParts,
): Promise<ConsoleServer> {
  const streams = new EventStreams(parts);
  const routes = new Routes(parts, streams);
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    for (const [name, value] of Object.entries(commonHeaders)) response.setHeader(name, value);
    const path = (request.url ?? "").replace(/\?.*/s, "");
    if (parts.page.serve(path, request, response)) return;
    requireToken(request, token);
    await routes.answer(path, request, response);
  };
  const server = createServer(limits, (request, response) => {
    answer(request, response).catch((error: unknown) => {
      const failure = error instanceof HttpError ? error : failed(error);
      if (failure.status >= 500 && !isDisconnection(error)) parts.onError(failure.cause ?? failure);
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
    [Symbol.asyncDispose]: async () => {
      streams[Symbol.dispose]();
      const closed = Promise.withResolvers<void>();
      server.close(() => closed.resolve());
      server.closeAllConnections();
      await closed.promise;
    },
  };
}

/** The cause is for the log: it may name paths. */
function failed(cause: unknown): HttpError {
  const options = { cause };
  return new HttpError(500, "INTERNAL_ERROR", "The console failed; the log has the cause", options);
}
