/**
 * The HTTP proxy of one sandbox, for programs that are configured for one. It connects as the
 * sandbox itself does: by the same rules, bounds and record.
 */
import { Agent, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { RefusalReason } from "../protocol/execution.ts";
import { proxyPort } from "../protocol/network-rules.ts";
import { localConnection } from "../support/streams/local-connection.ts";
import { endToEndHeaders, forward } from "./http-forward.ts";
import { BadRequestError, createStrictServer, statusMessage } from "./http-server.ts";
import { type Authority, absoluteTarget, tunnelTarget } from "./proxy-target.ts";
import type { NetworkRecord } from "./record.ts";
import { type Connections, idleMs, maxConnectionsInAll, reset } from "./tcp.ts";
import { RefusedError } from "./upstream.ts";

/** Where it listens inside. */
export const proxyPlace = { address: "127.0.0.1", port: proxyPort };

/** Hosts that programs reach without it: what is inside. */
const withoutProxy = "localhost,127.0.0.1,::1,127.0.0.0/8";

const proxyUrl = `http://${proxyPlace.address}:${proxyPlace.port}`;

/** Variables by which programs find it. */
export const proxyVariables: ReadonlyMap<string, string> = new Map(
  Object.entries({ HTTP_PROXY: proxyUrl, HTTPS_PROXY: proxyUrl, NO_PROXY: withoutProxy }).flatMap(
    ([name, value]) => [
      [name, value],
      [name.toLowerCase(), value],
    ],
  ),
);

/** What the proxy of a sandbox needs. */
export interface ProxyParts {
  readonly connections: Pick<Connections, "serve" | "destinationAt">;
  readonly record: NetworkRecord;
  /** Connections at once. */
  readonly maxConnections: number;
  /** Aborts with the sandbox. */
  readonly signal: AbortSignal;
}

/** Serves connections to the proxy until its signal aborts. */
export class HttpProxy {
  readonly #parts: ProxyParts;
  readonly #clients = new Set<Socket>();
  /** Clients with a request that is not answered. */
  readonly #busy = new WeakSet<Socket>();
  #taken = 0;
  /** Made by the first connection: most sandboxes have none. */
  #server: Server | undefined;

  constructor(parts: ProxyParts) {
    this.#parts = parts;
    parts.signal.addEventListener("abort", () => {
      for (const client of this.#clients) client.destroy();
    });
  }

  /** Takes over a paused connection from inside. Never throws. */
  take(client: Socket): void {
    const { record, maxConnections } = this.#parts;
    client.on("error", () => undefined);
    if (this.#clients.size >= maxConnections || this.#taken >= maxConnectionsInAll) {
      const reason = "too-many-connections";
      record.begin({ kind: "address", ...proxyPlace }).end(reason);
      return answerRaw(client, refusal({ ...proxyPlace, host: proxyPlace.address }, reason));
    }
    this.#taken++;
    this.#clients.add(client);
    client.once("close", () => this.#clients.delete(client));
    this.#server ??= this.#createServer();
    this.#server.emit("connection", client);
    client.resume();
  }

  #createServer(): Server {
    const server = createStrictServer(idleMs, this.#parts.signal);
    server.on("request", (request, response) => void this.#answer(request, response));
    server.on("connect", (request, client, head) => {
      this.#openTunnel(request, client as Socket, head);
    });
    server.on("clientError", (error, client) => {
      // Bytes of an answer may be on their way.
      if (this.#busy.has(client as Socket) || !client.writable) return void client.destroy();
      answerRaw(client as Socket, problemOf(error));
    });
    return server;
  }

  /** Each request gets a connection of its own, so that each is decided by itself. */
  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const client = request.socket;
    // A second request before the answer to the first would not be bounded.
    if (this.#busy.has(client)) return void client.destroy();
    this.#busy.add(client);
    const gone = new AbortController();
    response.once("close", () => {
      this.#busy.delete(client);
      gone.abort(new Error("the connection is gone"));
    });
    response.sendDate = false;
    try {
      const target = absoluteTarget(request);
      const others = endToEndHeaders(request.rawHeaders).filter(([name]) => !/^host$/i.test(name));
      const agent = new Agent();
      agent.createConnection = () => this.#connect(target);
      await forward({
        ...{ incoming: request, response, agent, target: target.path },
        headers: [["Host", hostOf(target)], ...others],
        signal: AbortSignal.any([this.#parts.signal, gone.signal]),
      }).catch((error: unknown) => {
        const reason = error instanceof RefusedError ? error.reason : "unreachable";
        answer(response, refusal(target, reason));
      });
    } catch (error) {
      if (!(error instanceof BadRequestError)) return void response.destroy();
      answer(response, { status: 400, text: error.message });
    }
  }

  /** A connection as the sandbox itself would have made it. */
  #connect({ host, port }: Authority): Socket {
    const { connections } = this.#parts;
    const [near, far] = localConnection();
    near.on("error", () => undefined);
    connections.serve(far, connections.destinationAt(host, port), {
      onRefused: (reason) => void far.destroy(new RefusedError(reason)),
    });
    return near;
  }

  #openTunnel(request: IncomingMessage, client: Socket, head: Buffer): void {
    const { connections } = this.#parts;
    if (this.#busy.has(client)) return void client.destroy();
    client.on("error", () => undefined);
    let target: Authority;
    try {
      target = tunnelTarget(request);
    } catch (error) {
      return answerRaw(client, { status: 400, text: (error as BadRequestError).message });
    }
    if (head.byteLength > 0) client.unshift(head);
    let isOpen = false;
    connections.serve(client, connections.destinationAt(target.host, target.port), {
      onOpen: () => {
        isOpen = true;
        client.write("HTTP/1.1 200 Connection Established\r\n\r\n");
      },
      onRefused: (reason) => {
        if (isOpen) reset(client);
        else answerRaw(client, refusal(target, reason));
      },
    });
  }
}

/** An answer of the proxy itself. */
interface Answer {
  readonly status: number;
  readonly text: string;
  /** Shown in the status line too, which is all that many programs report. */
  readonly reason?: RefusalReason;
}

/** Reasons that no other attempt changes. */
const forbidden: readonly RefusalReason[] = [
  ...(["no-rule", "name-not-allowed", "not-public", "worker"] as const),
  ...(["sni", "not-tls", "request"] as const),
];

function refusal({ host, port }: Authority, reason: RefusalReason): Answer {
  const [status, text] = explanationOf(reason);
  return { status, reason, text: `${host}:${port}: ${text} (${reason})` };
}

function explanationOf(reason: RefusalReason): readonly [status: number, text: string] {
  if (reason === "too-many-connections") return [503, "too many connections"];
  return forbidden.includes(reason)
    ? [403, "the network of this tool does not allow it"]
    : [502, "the host cannot be used"];
}

function problemOf({ code }: NodeJS.ErrnoException): Answer {
  switch (code) {
    case "HPE_HEADER_OVERFLOW":
      return { status: 431, text: "the headers are too large" };
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return { status: 408, text: "the request took too long" };
    default:
      return { status: 400, text: "this is no request of HTTP/1.1" };
  }
}

/** The port is left out where it is the default: RFC 9110, section 7.2. */
function hostOf({ host, port }: Authority): string {
  return port === 80 ? host : `${host}:${port}`;
}

function headersOf(text: string): Record<string, string | number> {
  return {
    "Content-Type": "text/plain",
    "Content-Length": Buffer.byteLength(text),
    // What is left of the request is not read.
    Connection: "close",
  };
}

function answer(response: ServerResponse, { status, text, reason }: Answer): void {
  if (response.headersSent || response.destroyed) return void response.destroy();
  const line = `${text}\n`;
  response.writeHead(status, statusMessage(status, reason), headersOf(line));
  response.end(line);
}

function answerRaw(client: Socket, { status, text, reason }: Answer): void {
  const line = `${text}\n`;
  const headers = Object.entries(headersOf(line)).map(([name, value]) => `${name}: ${value}\r\n`);
  const message = statusMessage(status, reason);
  client.write(`HTTP/1.1 ${status} ${message}\r\n${headers.join("")}\r\n${line}`);
  client.destroySoon();
}
