/**
 * A Solace broker for tests, to which the real client libraries connect over tcp and tcps.
 *
 *     await using broker = await startSmfBroker();
 *     const session = solace.SolclientFactory.createSession({ url: broker.url, vpnName: "default", … });
 *
 * It has logins, topics, shared subscriptions, durable queues with every settlement outcome, and a dead message queue. It
 * knows no passwords: any user may do everything, but for queues that clients made with permissions for others. What is to
 * go wrong is set in `faults`; what happened is told by `events`, and can be looked up in `queues` and `queue()`.
 *
 * Where it is simpler than a real broker: queues are in memory, and outlive connections and `stop()`, but not the process.
 * There are no transactions, selectors, replays, browsers or temporary queues, and one VPN only, whatever its name.
 */
import { type EventEmitter, once } from "node:events";
import { type AddressInfo, type Server, type Socket, createServer } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { Connection, maxClients } from "./connection.ts";
import type { SmfBrokerEvents } from "./events.ts";
import { type Faults, refusals } from "./faults.ts";
import type { Response } from "./params.ts";
import type { QueueProperties } from "./queue-properties.ts";
import type { QueueSummary } from "./queue.ts";
import { Router } from "./router.ts";

/** How often messages are looked for whose time to live is over. */
const expiryIntervalMs = 100;

/** Certificate and key of the broker, as PEM. */
export interface SmfBrokerTls {
  readonly cert: string | Buffer;
  readonly key: string | Buffer;
  /** Who may certify clients; without it none is asked for a certificate, with it each must show one. */
  readonly clientCa?: string | Buffer;
}

/** How a broker is started. */
export interface SmfBrokerOptions {
  /** Address to listen on; loopback unless told. */
  readonly host?: string;
  /** Port to listen on; a free one unless told. */
  readonly port?: number;
  readonly tls?: SmfBrokerTls;
  /** Refuses guaranteed messages to topics that nobody subscribes to; otherwise they are confirmed and dropped. */
  readonly rejectsUnmatched?: boolean;
  /** Epoch milliseconds. */
  readonly now?: () => number;
}

/** Starts a broker. Rejects when it cannot listen. The caller disposes it, which drops every connection. */
export async function startSmfBroker(options: SmfBrokerOptions = {}): Promise<SmfBroker> {
  const broker = new SmfBroker(options);
  try {
    await broker.start();
    return broker;
  } catch (error) {
    await broker[Symbol.asyncDispose]();
    throw error;
  }
}

/** A broker, listening or stopped. */
export class SmfBroker implements AsyncDisposable {
  readonly host: string;
  readonly events: EventEmitter<SmfBrokerEvents>;
  readonly faults: Faults;
  readonly #tls: SmfBrokerTls | undefined;
  readonly #router: Router;
  readonly #connections = new Set<Connection>();
  /** Also those that are no connections yet, since TLS has not been agreed upon. */
  readonly #sockets = new Set<Socket>();
  readonly #expiry: NodeJS.Timeout;
  #port: number;
  #server: Server | undefined;
  #lastConnection = 0;

  /** Use `startSmfBroker`: a broker that is only made does not listen. */
  constructor(options: SmfBrokerOptions) {
    const { host = "127.0.0.1", port = 0, rejectsUnmatched = false, now = Date.now } = options;
    this.host = host;
    this.#port = port;
    this.#tls = options.tls;
    this.#router = new Router({ now, rejectsUnmatched });
    this.events = this.#router.events;
    this.faults = this.#router.faults;
    this.#expiry = setInterval(() => {
      for (const queue of this.#router.queues.values()) queue.expire();
    }, expiryIntervalMs);
  }

  /** Where it listens; from the first start on always the same. */
  get port(): number {
    return this.#port;
  }

  /** For client libraries: `tcp://HOST:PORT`, or `tcps:` with TLS. */
  get url(): string {
    const host = this.host.includes(":") ? `[${this.host}]` : this.host;
    return `${this.#tls ? "tcps" : "tcp"}://${host}:${this.#port}`;
  }

  /** Names of the clients that are logged in. */
  get clients(): readonly string[] {
    return [...this.#router.clients.keys()];
  }

  /** Every queue as it is now, the dead message queue among them. */
  get queues(): readonly QueueSummary[] {
    return [...this.#router.queues.values()].map((queue) => queue.describe());
  }

  /** A queue as it is now; undefined when there is none of this name. */
  queue(name: string): QueueSummary | undefined {
    return this.#router.queues.get(name)?.describe();
  }

  /** Makes a queue, as an administrator does. Throws when it is there already. */
  createQueue(
    name: string,
    properties: Partial<QueueProperties> = {},
    subscriptions: readonly string[] = [],
  ): void {
    const refusal = this.#router.createQueue(name, properties);
    if (refusal) throw new Error(`queue "${name}": ${refusal.text}`);
    for (const topic of subscriptions) this.#router.queues.get(name)?.subscriptions.add(topic);
  }

  /** Removes a queue with its messages; its consumers are unbound. */
  deleteQueue(name: string): void {
    this.#router.deleteQueue(name);
  }

  /** Unbinds every consumer of a queue, and tells them `reason`; on "Service Unavailable" the library binds again itself. */
  unbindAll(name: string, reason: Response = refusals.queueShutdown): void {
    this.#router.queues.get(name)?.unbindAll(reason);
  }

  /** Cuts every connection, without a word. New ones are accepted. */
  dropAll(): void {
    // All before any client's messages come back, or the next to be cut would be handed them.
    for (const socket of this.#sockets) socket.destroy();
    for (const connection of this.#connections) connection.close();
  }

  /** Listens again after `stop()`, on the same port. Idempotent; rejects when it cannot. */
  async start(): Promise<void> {
    if (this.#server) return;
    const server = this.#createServer();
    server.on("connection", (socket: Socket) => {
      this.#sockets.add(socket);
      socket.once("close", () => this.#sockets.delete(socket));
    });
    server.maxConnections = maxClients;
    server.listen(this.#port, this.host);
    await once(server, "listening");
    this.#server = server;
    this.#port = (server.address() as AddressInfo).port;
  }

  /** Goes down: no connection, and none accepted. Queues and their messages stay. Idempotent. */
  async stop(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (server === undefined) return;
    const closed = once(server, "close");
    server.close();
    this.dropAll();
    await closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#expiry);
    await this.stop();
  }

  #createServer(): Server {
    const serve = (socket: Socket): void => {
      const connection = new Connection(socket, this.#router, ++this.#lastConnection);
      this.#connections.add(connection);
      socket.once("close", () => this.#connections.delete(connection));
    };
    if (!this.#tls) return createServer({ noDelay: true }, serve);
    const { cert, key, clientCa } = this.#tls;
    const clientCheck = clientCa
      ? { ca: clientCa, requestCert: true, rejectUnauthorized: true }
      : {};
    const server = createTlsServer({ cert, key, noDelay: true, ...clientCheck }, serve);
    // A client that does not trust us, or that we do not trust, has left already.
    server.on("tlsClientError", () => {});
    return server;
  }
}
