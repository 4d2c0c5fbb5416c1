/**
 * Serves a backend to other processes.
 *
 * Each execution has a WebSocket of its own: its end is the execution's end, its gateway is bounded
 * by itself, and no large answer delays another execution. The price is a handshake.
 */
import type { IncomingMessage, RequestListener, Server, ServerOptions } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { WebSocketServer } from "ws";
import { isSecret } from "../../support/text/secret.ts";
import { Semaphore } from "../../support/semaphore.ts";
import { RuntimeError } from "../api/errors.ts";
import { missingFor } from "./address.ts";
import { Connection, ConnectionError } from "./connection.ts";
import {
  closeMs,
  defaultMaxConnections,
  defaultMaxExecutions,
  handshakeMs,
  maxHandshakes,
  maxRequestBytes,
} from "./limits.ts";
import { type CallerRequest, readCallerMessage, subprotocol } from "./messages.ts";
import type { RuntimeService, ServeOptions } from "./options.ts";
import { type ServiceParts, serveConnection } from "./served-execution.ts";

/** An `import` would load `fetch` and `WebSocket`, too. */
const http = process.getBuiltinModule("node:http");
const https = process.getBuiltinModule("node:https");

const scheme = "Bearer ";

/**
 * Listens. Rejects with RuntimeError `RUNTIME_UNAVAILABLE` for an address that is refused, and with
 * the system's error for one that cannot be had.
 */
export async function serveRuntime(options: ServeOptions): Promise<RuntimeService> {
  const { host = "127.0.0.1", port, token, tls } = options;
  const missing = missingFor(host, { hasToken: token !== undefined, hasTls: tls !== undefined });
  if (missing !== undefined) {
    const detail = `${host} is not this machine only: it needs ${missing}`;
    throw new RuntimeError("RUNTIME_UNAVAILABLE", { detail, op: "open", retryable: false });
  }
  const service = new Service(options);
  await service.listen(port, host);
  return service;
}

class Service implements RuntimeService {
  readonly #options: ServeOptions;
  readonly #server: Server;
  readonly #webSockets = new WebSocketServer({
    ...{ noServer: true, clientTracking: false, perMessageDeflate: false },
    // One message a turn of the event loop, so that no flood holds up the others.
    ...{ maxPayload: maxRequestBytes, allowSynchronousEvents: false, closeTimeout: closeMs },
    handleProtocols: () => subprotocol,
  });
  readonly #parts: ServiceParts;
  readonly #closing = new AbortController();
  readonly #served = new Set<Promise<void>>();
  /** All, those that are not authenticated included. */
  readonly #sockets = new Set<Socket>();

  constructor(options: ServeOptions) {
    this.#options = options;
    const { backend, maxExecutions = defaultMaxExecutions, onError = () => undefined } = options;
    const permits = new Semaphore({ capacity: maxExecutions, maxWaiting: Infinity });
    this.#parts = { backend, permits, closing: this.#closing.signal, onError };
    this.#server = createServer(options);
    this.#server.on("connection", (socket: Socket) => this.#connected(socket));
    this.#server.on("upgrade", (...given: [IncomingMessage, Duplex, Buffer]) =>
      this.#upgrade(...given),
    );
  }

  get port(): number {
    const address = this.#server.address();
    return typeof address === "object" && address !== null ? address.port : 0;
  }

  async listen(port: number, host: string): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#server.once("error", reject);
    // Sockets have addresses without the brackets of URLs.
    this.#server.listen(port, host.replace(/^\[|\]$/g, ""), resolve);
    await promise;
    this.#server.off("error", reject);
    this.#server.on("error", this.#parts.onError);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(new ConnectionError("the service is closed", true));
    const closed = Promise.withResolvers<void>();
    this.#server.close(() => closed.resolve());
    await Promise.all(this.#served);
    for (const socket of this.#sockets) socket.destroy();
    await closed.promise;
  }

  #connected(socket: Socket): void {
    this.#sockets.add(socket);
    socket.once("close", () => this.#sockets.delete(socket));
    if (this.#sockets.size - this.#served.size > maxHandshakes) socket.destroy();
  }

  #upgrade(request: IncomingMessage, socket: Duplex, first: Buffer): void {
    const refusal = this.#refusalOf(request);
    if (refusal !== undefined) {
      socket.on("error", () => undefined);
      const head = `HTTP/1.1 ${refusal}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`;
      return void socket.end(head, () => socket.destroy());
    }
    this.#webSockets.handleUpgrade(request, socket, first, (webSocket) => {
      const { pingIntervalMs } = this.#options;
      const options = { read: readCallerMessage, pingIntervalMs };
      const serving = this.#serve(new Connection(webSocket, request.socket, options));
      this.#served.add(serving);
      void serving.finally(() => this.#served.delete(serving));
    });
  }

  /** The status of a refused request. */
  #refusalOf({ headers }: IncomingMessage): string | undefined {
    const { token, maxConnections = defaultMaxConnections } = this.#options;
    // Each page of a browser may connect to this machine; browsers say so.
    if (headers.origin !== undefined) return "403 Forbidden";
    const { authorization = "" } = headers;
    const given = authorization.startsWith(scheme) ? authorization.slice(scheme.length) : "";
    if (token !== undefined && !isSecret(given, token)) return "401 Unauthorized";
    const protocols = headers["sec-websocket-protocol"]?.split(/\s*,\s*/) ?? [];
    if (!protocols.includes(subprotocol)) return "400 Bad Request";
    const isBusy = this.#closing.signal.aborted || this.#served.size >= maxConnections;
    return isBusy ? "503 Service Unavailable" : undefined;
  }

  async #serve(accepted: Connection<CallerRequest>): Promise<void> {
    await using connection = accepted;
    await serveConnection(connection, this.#parts);
  }
}

function createServer({ tls }: ServeOptions): Server {
  const refuse: RequestListener = (_request, response) => void response.writeHead(426).end();
  const limits: ServerOptions = {
    headersTimeout: handshakeMs,
    requestTimeout: handshakeMs,
    connectionsCheckingInterval: 1_000,
  };
  if (tls === undefined) return http.createServer(limits, refuse);
  return https.createServer({ ...limits, ...tls, handshakeTimeout: handshakeMs }, refuse);
}
