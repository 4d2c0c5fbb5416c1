/**
 * A Solace broker for tests, to which the real client libraries connect over tcp and ws, and over
 * both with TLS.
 *
 *     await using broker = await startSmfBroker();
 *     const session = solace.SolclientFactory.createSession({ url: broker.url, vpnName: "default", … });
 *
 * It has logins, topics, shared subscriptions, durable queues with every settlement outcome, and a
 * dead message queue. It knows no passwords: any user may do everything, but for queues that
 * clients made with permissions for others. What is to go wrong is set in `faults`; what happened
 * is told by `events`, and can be looked up in `queues` and `queue()`.
 *
 * Where it is simpler than a real broker: queues are in memory, and outlive connections and
 * `stop()`, but not the process. Replays begin with the oldest logged message. There are no
 * transactions, selectors, browsers or temporary queues, and one VPN only, whatever its name.
 */
import type { EventEmitter } from "node:events";
import type { Duplex } from "node:stream";
import { Connection } from "./connection.ts";
import type { SmfBrokerEvents } from "./events.ts";
import { type Faults, refusals } from "./faults.ts";
import { Listener } from "./listener.ts";
import type { Response } from "./wire/params.ts";
import type { QueueProperties } from "./wire/queue-properties.ts";
import type { QueueSummary } from "./queue.ts";
import { Router } from "./router.ts";
import { type SmfBrokerTls, type Transport, tcp, web } from "./servers.ts";

/** How often messages are looked for whose time to live is over. */
const expiryIntervalMs = 100;

/** How a broker is started. */
export interface SmfBrokerOptions {
  /** Address to listen on; loopback unless told. */
  readonly host?: string;
  /** Port to listen on; a free one unless told. */
  readonly port?: number;
  /** Port to listen on for WebSockets; none unless told, 0 takes a free one. */
  readonly webPort?: number;
  readonly tls?: SmfBrokerTls;
  /**
   * Refuses guaranteed messages to topics that nobody subscribes to; otherwise they are confirmed
   * and dropped.
   */
  readonly rejectsUnmatched?: boolean;
  /** Keeps guaranteed messages for `replay()`. */
  readonly keepsReplayLog?: boolean;
  /** Epoch milliseconds. */
  readonly now?: () => number;
}

/**
 * Starts a broker. Rejects when it cannot listen. The caller disposes it, which drops every
 * connection.
 */
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
  readonly #router: Router;
  readonly #tcp: Listener;
  readonly #web: Listener | undefined;
  readonly #connections = new Set<Connection>();
  readonly #expiry: NodeJS.Timeout;
  #lastConnection = 0;

  /** Use `startSmfBroker`: a broker that is only made does not listen. */
  constructor(options: SmfBrokerOptions) {
    const { host = "127.0.0.1", port = 0, webPort, tls } = options;
    const { rejectsUnmatched = false, keepsReplayLog = false, now = Date.now } = options;
    this.host = host;
    const listener = (transport: Transport, at: number): Listener =>
      new Listener({
        transport,
        host,
        port: at,
        tls,
        serve: (stream, certificateName) => this.#serve(stream, certificateName),
      });
    this.#tcp = listener(tcp, port);
    this.#web = webPort === undefined ? undefined : listener(web, webPort);
    this.#router = new Router({ now, rejectsUnmatched, keepsReplayLog });
    this.events = this.#router.events;
    this.faults = this.#router.faults;
    this.#expiry = setInterval(() => {
      for (const queue of this.#router.queues.values()) queue.expire();
    }, expiryIntervalMs);
  }

  /** Where it listens; from the first start on always the same. */
  get port(): number {
    return this.#tcp.port;
  }

  /** For client libraries: `tcp://HOST:PORT`, or `tcps:` with TLS. */
  get url(): string {
    return this.#tcp.url;
  }

  /** `ws://HOST:PORT`, or `wss:` with TLS; undefined without a port for WebSockets. */
  get webUrl(): string | undefined {
    return this.#web?.url;
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

  /**
   * Unbinds every consumer of a queue, and tells them `reason`; on "Service Unavailable" the
   * library binds again itself.
   */
  unbindAll(name: string, reason: Response = refusals.queueShutdown): void {
    this.#router.queues.get(name)?.unbindAll(reason);
  }

  /**
   * Replays the log to a queue, as an administrator does: consumers are unbound, and nothing says
   * which messages are old.
   */
  replay(name: string): void {
    const queue = this.#router.queues.get(name);
    if (queue) this.#router.replay(queue);
  }

  /** Cuts every connection, without a word. New ones are accepted. */
  dropAll(): void {
    // All before any client's messages come back, or the next to be cut would be handed them.
    for (const connection of this.#connections) connection.cut();
    for (const listener of this.#listeners) listener.cut();
    for (const connection of this.#connections) connection.close();
  }

  /** Listens again after `stop()`, on the same ports. Idempotent; rejects when it cannot. */
  async start(): Promise<void> {
    for (const listener of this.#listeners) await listener.start();
  }

  /** Goes down: no connection, and none accepted. Queues and their messages stay. Idempotent. */
  async stop(): Promise<void> {
    const stopped = this.#listeners.map((listener) => listener.stop());
    this.dropAll();
    await Promise.all(stopped);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#expiry);
    await this.stop();
  }

  get #listeners(): readonly Listener[] {
    return this.#web ? [this.#tcp, this.#web] : [this.#tcp];
  }

  #serve(stream: Duplex, certificateName: string | undefined): void {
    const id = ++this.#lastConnection;
    const connection = new Connection({ stream, certificateName, router: this.#router, id });
    this.#connections.add(connection);
    stream.once("close", () => this.#connections.delete(connection));
  }
}
