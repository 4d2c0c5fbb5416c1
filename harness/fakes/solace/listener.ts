/**
 * A port that the broker listens on, and the sockets of those who came there.
 */
import { once } from "node:events";
import type { AddressInfo, Server, Socket } from "node:net";
import { maxClients } from "./connection.ts";
import type { Serve, SmfBrokerTls, Transport } from "./servers.ts";

/** Where it listens, and for what. */
export interface ListenerOptions {
  readonly transport: Transport;
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  readonly tls: SmfBrokerTls | undefined;
  readonly serve: Serve;
}

/** Listens or is stopped. */
export class Listener {
  readonly #options: ListenerOptions;
  /** Also those that are no connections yet, since TLS or a WebSocket has not been agreed upon. */
  readonly #sockets = new Set<Socket>();
  #port: number;
  #server: Server | undefined;

  constructor(options: ListenerOptions) {
    this.#options = options;
    this.#port = options.port;
  }

  /** Where it listens; from the first start on always the same. */
  get port(): number {
    return this.#port;
  }

  /** For client libraries: `tcp://HOST:PORT`, say. */
  get url(): string {
    const { transport, host, tls } = this.#options;
    const scheme = tls ? transport.secureScheme : transport.scheme;
    return `${scheme}://${host.includes(":") ? `[${host}]` : host}:${this.#port}`;
  }

  /** Listens, again on the same port. Idempotent; rejects when it cannot. */
  async start(): Promise<void> {
    if (this.#server) return;
    const { transport, host, tls, serve } = this.#options;
    const server = transport.createServer(tls, serve);
    server.on("connection", (socket: Socket) => {
      this.#sockets.add(socket);
      socket.once("close", () => this.#sockets.delete(socket));
    });
    server.maxConnections = maxClients;
    server.listen(this.#port, host);
    await once(server, "listening");
    this.#server = server;
    this.#port = (server.address() as AddressInfo).port;
  }

  /** Cuts whoever is connected. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  /**
   * Accepts nobody any more; resolves when the last of those who are connected has gone.
   * Idempotent.
   */
  async stop(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (server === undefined) return;
    const closed = once(server, "close");
    server.close();
    await closed;
  }
}
