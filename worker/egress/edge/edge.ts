/**
 * Opened connections of one sandbox: ends TLS, checks each request, and sends it on.
 */
import { Agent, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { TLSSocket, createSecureContext } from "node:tls";
import { canonicalName } from "../../protocol/host-pattern.ts";
import type { RefusalReason } from "../../protocol/execution.ts";
import type { RequestRule } from "../../protocol/request-rules.ts";
import { endToEndHeaders, forward } from "../http-forward.ts";
import {
  BadRequestError,
  checkMessage,
  createStrictServer,
  hostHeadersOf,
  statusMessage,
} from "../http-server.ts";
import type { Destination, Grant } from "../policy.ts";
import type { OpenConnection } from "../record.ts";
import { RefusedError, type UpstreamParts, connectUpstream, secure } from "../upstream.ts";
import type { CertificateAuthority } from "./authority.ts";
import { CredentialError, type CredentialValues } from "./credentials.ts";
import { judgeRequest } from "./requests.ts";

/** Words of the tool's answer, for some reasons. */
const explanations: Partial<Record<RefusalReason, string>> = {
  request: "the network of this tool does not allow this request",
  credential: "the credential of this host cannot be used",
  certificate: "the certificate of this host is not valid",
};

/** What opened connections need. */
export interface EdgeParts {
  readonly authority: Pick<CertificateAuthority, "leafFor">;
  readonly credentials: Pick<CredentialValues, "add">;
  /** Called with each credential that cannot be used. */
  readonly onCredentialFailed: (error: CredentialError) => void;
  readonly host: UpstreamParts;
  /** Milliseconds without a byte, after which a connection ends. */
  readonly idleMs: number;
  /** Aborts with the sandbox. */
  readonly signal: AbortSignal;
}

/** A connection to a name, with its grant. */
export interface OpenedHost {
  readonly connection: OpenConnection;
  readonly destination: Extract<Destination, { kind: "name" }>;
  readonly grant: Grant;
  readonly requests: readonly (readonly RequestRule[])[];
}

interface ServedConnection extends OpenedHost {
  readonly isSecure: boolean;
  readonly agent: Agent;
  /** Aborts with the connection. */
  readonly signal: AbortSignal;
  isBusy: boolean;
  /** Bytes of earlier requests and responses. */
  counted: { readonly read: number; readonly written: number };
}

/** Serves opened connections until its signal aborts. */
export class Edge {
  readonly #parts: EdgeParts;
  readonly #connections = new Map<Socket, ServedConnection>();
  readonly #server: Server;

  constructor(parts: EdgeParts) {
    this.#parts = parts;
    parts.signal.addEventListener("abort", () => {
      for (const [stream, served] of this.#connections) count(stream, served);
    });
    this.#server = createStrictServer(parts.idleMs, parts.signal);
    this.#server.on("request", (request, response) => void this.#answer(request, response));
  }

  /** Takes over a connection whose first bytes are allowed. */
  async take(client: Socket, host: OpenedHost, isSecure: boolean): Promise<void> {
    const gone = new AbortController();
    const signal = AbortSignal.any([this.#parts.signal, gone.signal]);
    const agent = this.#agentOf(host, isSecure, signal);
    const stream = isSecure ? await this.#endTls(client, host) : client;
    const counted = { read: 0, written: 0 };
    const served = { ...host, isSecure, agent, signal, isBusy: false, counted };
    this.#connections.set(stream, served);
    stream.once("close", () => {
      this.#connections.delete(stream);
      count(stream, served);
      host.connection.end();
      gone.abort(new Error("the connection is gone"));
      agent.destroy();
    });
    this.#server.emit("connection", stream);
    stream.resume();
  }

  async #endTls(client: Socket, { destination, connection }: OpenedHost): Promise<TLSSocket> {
    const { authority } = this.#parts;
    const secureContext = createSecureContext(await authority.leafFor(destination.name));
    if (client.destroyed) throw new Error("the connection is gone");
    const options = { isServer: true, secureContext, ALPNProtocols: ["http/1.1"] };
    const stream = new TLSSocket(client, options);
    stream.on("error", () => stream.destroy());
    // Ends before that where a program does not accept the certificate.
    const onEnd = (): void => connection.end("handshake");
    stream.once("close", onEnd);
    stream.once("secure", () => stream.off("close", onEnd));
    return stream;
  }

  /** Connects when a request needs it, and again when the host has ended a connection. */
  #agentOf(
    { destination, grant, connection }: OpenedHost,
    isSecure: boolean,
    signal: AbortSignal,
  ): Agent {
    const connect = async (): Promise<Socket> => {
      const socket = await connectUpstream(destination, grant, this.#parts.host, signal);
      connection.address = socket.remoteAddress;
      return isSecure ? secure(socket, destination.name, signal) : socket;
    };
    const agent = new Agent({ keepAlive: true });
    agent.createConnection = (_options, callback) => {
      connect().then(
        (socket) => callback?.(null, socket),
        (error: unknown) => callback?.(error as Error, undefined as never),
      );
      return undefined;
    };
    return agent;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { socket } = request;
    const served = this.#connections.get(socket);
    // A second request before the answer to the first would not be bounded.
    if (served === undefined || served.isBusy) return void socket.destroy();
    served.isBusy = true;
    response.once("close", () => {
      count(socket, served);
      served.isBusy = false;
    });
    response.sendDate = false;
    try {
      await this.#forward(request, response, served);
    } catch (error) {
      this.#refuse(response, served, error);
    }
  }

  async #forward(
    request: IncomingMessage,
    response: ServerResponse,
    served: ServedConnection,
  ): Promise<void> {
    checkMessage(request);
    const { requests, isSecure, destination, agent, signal } = served;
    const { method = "", url: target = "" } = request;
    const headerNames = Object.keys(request.headers);
    const allowed = isOfHost(request, destination)
      ? judgeRequest(requests, { method, target, isSecure, headerNames })
      : undefined;
    if (allowed === undefined) throw new RefusedError("request");
    const { credential } = allowed;
    const { name, port } = destination;
    const host = port === defaultPort(isSecure) ? name : `${name}:${port}`;
    const others = endToEndHeaders(request.rawHeaders).filter(
      ([header]) => !/^host$/i.test(header),
    );
    const head = { target, headers: [["Host", host] as const, ...others] };
    const { credentials } = this.#parts;
    const sent = credential === undefined ? head : await credentials.add(credential, head);
    await forward({ incoming: request, response, ...sent, agent, signal });
  }

  #refuse(response: ServerResponse, served: ServedConnection, error: unknown): void {
    const { destination, connection, signal } = served;
    // The tool no longer waits.
    if (signal.aborted) return void response.destroy();
    const { name: host, port } = destination;
    if (error instanceof CredentialError) this.#parts.onCredentialFailed(error);
    const refused = asRefusal(error);
    connection.address ??= refused.address;
    connection.refuseRequest(refused.reason);
    if (response.headersSent || response.destroyed) return void response.destroy();
    const { reason, detail } = refused;
    const code = detail === undefined ? reason : `${reason}, ${detail}`;
    const text = `${host}:${port}: ${explanations[reason] ?? "the host cannot be used"} (${code})\n`;
    // What is left of the request is not read.
    const status = reason === "request" ? 403 : 502;
    response.writeHead(status, statusMessage(status, reason), {
      ...{ "Content-Type": "text/plain", "Content-Length": Buffer.byteLength(text) },
      Connection: "close",
    });
    response.end(text);
  }
}

function asRefusal(error: unknown): RefusedError {
  if (error instanceof RefusedError) return error;
  if (error instanceof BadRequestError)
    return new RefusedError("request", { cause: error, detail: error.message });
  return new RefusedError(error instanceof CredentialError ? "credential" : "unreachable");
}

/** Counts the bytes since the last count. */
function count({ bytesRead, bytesWritten }: Socket, served: ServedConnection): void {
  const { connection, counted } = served;
  connection.sent(bytesRead - counted.read);
  connection.received(bytesWritten - counted.written);
  served.counted = { read: bytesRead, written: bytesWritten };
}

function defaultPort(isSecure: boolean): number {
  return isSecure ? 443 : 80;
}

/** Whether its one Host is the name that was connected to, and names no other port. */
function isOfHost(request: IncomingMessage, { name, port }: OpenedHost["destination"]): boolean {
  const hosts = hostHeadersOf(request);
  const [host = "", given] = (hosts[0] ?? "").split(":");
  if (hosts.length !== 1 || canonicalName(host) !== name) return false;
  return given === undefined || given === String(port);
}
