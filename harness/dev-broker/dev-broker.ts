/**
 * A DevBroker: the message router that agents bring along for development, in the tongue of the
 * original.
 *
 * Where it differs from the original on purpose: everything that can grow has a limit, and a client
 * that comes back under its former id really takes its place.
 */
import { type EventEmitter, once } from "node:events";
import { type AddressInfo, type Socket, createServer } from "node:net";
import { serveConnection } from "./dev-broker-connection.ts";
import { type ClientSubscriptions, type DevBrokerEvents, Hub } from "./dev-broker-hub.ts";

export type { ClientSubscriptions, DevBrokerEvents } from "./dev-broker-hub.ts";

/** Connections at once; further ones are closed as they come. */
export const maxConnections = 1_000;

/** A running DevBroker. Its owner disposes it; disposal drops every connection. */
export interface DevBroker extends AsyncDisposable {
  readonly host: string;
  readonly port: number;
  readonly events: EventEmitter<DevBrokerEvents>;
  /** What every connected client subscribes to, now. */
  readonly subscriptions: readonly ClientSubscriptions[];
  /** Resolves as soon as some client subscribes to `topic`; rejects with the signal's reason. */
  whenSubscribed(topic: string, signal: AbortSignal): Promise<void>;
  /** Cuts every connection, without a word. New ones are accepted. */
  dropConnections(): void;
}

/**
 * Starts a DevBroker on `host` (loopback unless told) and `port` (a free one unless told). Rejects
 * when it cannot listen.
 */
export async function startDevBroker(
  options: { host?: string; port?: number } = {},
): Promise<DevBroker> {
  const { host = "127.0.0.1", port = 0 } = options;
  const hub = new Hub();
  const sockets = new Set<Socket>();
  // A client that has said its last word may still be reading ours.
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    void serveConnection(socket, hub);
  });
  server.maxConnections = maxConnections;
  server.listen(port, host);
  await once(server, "listening");
  const dropConnections = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    host,
    port: (server.address() as AddressInfo).port,
    events: hub.events,
    get subscriptions() {
      return hub.subscriptions;
    },
    whenSubscribed: (topic, signal) => hub.whenSubscribed(topic, signal),
    dropConnections,
    async [Symbol.asyncDispose]() {
      const closed = once(server, "close");
      server.close();
      dropConnections();
      await closed;
    },
  };
}
