/**
 * Connections of a sandbox to hosts, each checked and spliced.
 */
import { type Socket, isIPv4 } from "node:net";
import type { RefusalReason } from "../protocol/execution.ts";
import type { NetworkPolicy } from "../protocol/network-rules.ts";
import { pump } from "../support/streams/pump.ts";
import { RefusedError, type UpstreamParts, connectUpstream } from "./upstream.ts";
import type { Edge } from "./edge/edge.ts";
import { firstByte, handshakeRecord, refusalOfFirstBytes } from "./first-bytes.ts";
import type { SandboxNames } from "./names.ts";
import { type Destination, type Grant, grantFor } from "./policy.ts";
import type { NetworkRecord, OpenConnection } from "./record.ts";

/** Connections that one sandbox may make in all. */
export const maxConnectionsInAll = 1_000;

/** Milliseconds without a byte in any direction, after which a connection ends. */
export const idleMs = 5 * 60_000;

const unreachable = new RefusedError("unreachable");

/** What serves the connections of one sandbox. */
export interface ConnectionParts {
  readonly policy: NetworkPolicy;
  readonly names: SandboxNames;
  readonly record: NetworkRecord;
  readonly host: UpstreamParts;
  /** Serves connections that rules open; undefined if none does. */
  readonly edge: Pick<Edge, "take"> | undefined;
  /** Called when no further connection may be made. */
  readonly onLast: () => void;
  /** Aborts with the sandbox. */
  readonly signal: AbortSignal;
}

/** Reports to the end of the connection inside. */
export interface Outcome {
  /** Called before the first byte, once only first bytes can still refuse the connection. */
  readonly onOpen?: () => void;
  /** Called at most once; it ends the connection. */
  readonly onRefused: (reason: RefusalReason) => void;
}

/** A connection that some rules allow. */
interface DecidedConnection {
  readonly client: Socket;
  readonly destination: Destination;
  readonly connection: OpenConnection;
  readonly grant: Grant;
}

/** Splices connections until its signal aborts. */
export class Connections {
  readonly #parts: ConnectionParts;
  readonly #open = new Map<Socket, OpenConnection>();

  constructor(parts: ConnectionParts) {
    this.#parts = parts;
    parts.signal.addEventListener("abort", () => {
      for (const [socket, connection] of this.#open) {
        connection.end();
        socket.destroy();
      }
    });
  }

  /** Takes over a paused connection of the sandbox. Never throws. */
  take(client: Socket): void {
    const { localAddress: address, localPort: port } = client;
    client.on("error", () => undefined);
    // A connection that is gone already has none.
    if (address === undefined || port === undefined) return reset(client);
    this.serve(client, this.destinationAt(address, port), { onRefused: () => reset(client) });
  }

  /** Connects a client to its destination. Takes over the client; never throws. */
  serve(client: Socket, destination: Destination, outcome: Outcome): void {
    const { record, policy } = this.#parts;
    client.on("error", () => undefined);
    const connection = record.begin(destination);
    const onRefused = (reason: RefusalReason): void => {
      connection.end(reason);
      outcome.onRefused(reason);
    };
    const isOneTooMany =
      this.#open.size >= policy.maxConnections || record.connections >= maxConnectionsInAll;
    if (isOneTooMany) return onRefused("too-many-connections");
    if (record.connections + 1 === maxConnectionsInAll) this.#parts.onLast();
    record.connections++;
    this.#open.set(client, connection);
    client.once("close", () => this.#open.delete(client));
    this.#serve(client, destination, connection, outcome).catch((error: unknown) => {
      const { reason, address } = error instanceof RefusedError ? error : unreachable;
      connection.address ??= address;
      onRefused(reason);
    });
  }

  /** The destination of a name, or of an IPv4 address, which may be that of a name inside. */
  destinationAt(host: string, port: number): Destination {
    const name = isIPv4(host) ? this.#parts.names.nameOf(host) : host;
    return name === undefined
      ? { kind: "address", address: host, port }
      : { kind: "name", name, port };
  }

  async #serve(
    client: Socket,
    destination: Destination,
    connection: OpenConnection,
    { onOpen }: Outcome,
  ): Promise<void> {
    const { policy } = this.#parts;
    const grant = grantFor(policy, destination);
    if (grant === undefined) throw new RefusedError("no-rule");
    connection.rules = grant.rules;
    const decided = { client, destination, connection, grant };
    if (grant.requests === undefined) return this.#splice(decided, onOpen);
    onOpen?.();
    return this.#giveToEdge(decided);
  }

  /** Connects to the host, and copies the bytes of both. */
  async #splice(
    { client, destination, connection, grant }: DecidedConnection,
    onOpen: Outcome["onOpen"],
  ): Promise<void> {
    const { host, signal } = this.#parts;
    const gone = new AbortController();
    const onClose = (): void => gone.abort(new Error("the connection is gone"));
    client.once("close", onClose);
    const upstream = await connectUpstream(
      destination,
      grant,
      host,
      AbortSignal.any([signal, gone.signal]),
      (bytes) => {
        connection.received(bytes.byteLength);
        return writeNow(client, bytes, () => upstream.resume());
      },
    );
    client.off("close", onClose);
    connection.address = upstream.remoteAddress;
    if (client.destroyed) {
      connection.end();
      return void upstream.destroy();
    }
    client.once("close", () => connection.end());
    onOpen?.();
    bind(client, upstream);
    // Servers that speak first are not held up.
    upstream.once("end", () => client.end());
    upstream.resume();
    const reason = await refusalOfFirstBytes(client, destination, grant);
    if (reason !== undefined) throw new RefusedError(reason);
    pump(client, upstream, (chunk) => connection.sent(chunk.byteLength));
  }

  /** Gives the connection to the edge, once its first bytes are allowed. */
  async #giveToEdge({ client, destination, connection, grant }: DecidedConnection): Promise<void> {
    const { edge } = this.#parts;
    const { requests } = grant;
    // Only rules for names look into requests.
    if (requests === undefined || edge === undefined || destination.kind !== "name")
      throw new RefusedError("no-rule");
    client.setTimeout(idleMs, () => client.destroy());
    const reason = await refusalOfFirstBytes(client, destination, grant);
    const first = await firstByte(client);
    if (first === undefined) {
      connection.end();
      return void client.destroy();
    }
    const isSecure = first === handshakeRecord;
    const mayBeClear = requests.every((rules) => rules.some(({ credential }) => !credential));
    if (reason !== undefined) throw new RefusedError(reason);
    if (!isSecure && !mayBeClear) throw new RefusedError("not-tls");
    client.setTimeout(0);
    await edge.take(client, { destination, grant, requests, connection }, isSecure);
  }
}

/** Whether all bytes are written; if not, calls back when they are. */
function writeNow(client: Socket, bytes: Uint8Array, onWritten: () => void): boolean {
  let isNow = true;
  client.write(bytes, (error) => {
    if (!isNow && !error) onWritten();
  });
  return (isNow = client.writableLength === 0);
}

/** Each ends with the other, and both when nothing passes. */
function bind(client: Socket, upstream: Socket): void {
  upstream.on("error", () => reset(client));
  client.once("close", () => upstream.destroy());
  upstream.once("close", () => client.destroySoon());
  upstream.setTimeout(idleMs, () => client.destroy());
}

/**
 * Ends a connection by a reset, as far as it can be: while a socket sends its end, Node would drop
 * it open and for good.
 */
export function reset(client: Socket): void {
  if (client.destroyed) return;
  const isEnding = client.writableEnded && !client.writableFinished;
  if (isEnding) client.destroy();
  else client.resetAndDestroy();
}
