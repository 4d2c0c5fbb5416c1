/**
 * Connections of a sandbox to hosts, each checked and spliced.
 */
import { type Socket, isIPv4 } from "node:net";
import { getExtensionData, readTlsClientHello } from "read-tls-client-hello";
import type { RefusalReason } from "../protocol/execution.ts";
import type { NetworkPolicy } from "../protocol/network-rules.ts";
import { pump } from "../support/streams/pump.ts";
import { RefusedError, type UpstreamParts, connectUpstream } from "./upstream.ts";
import type { Edge } from "./edge/edge.ts";
import type { SandboxNames } from "./names.ts";
import { type Destination, type Grant, grantFor } from "./policy.ts";
import type { NetworkRecord, OpenConnection } from "./record.ts";

/** Connections that one sandbox may make in all. */
export const maxConnectionsInAll = 1_000;

/** Milliseconds without a byte in any direction, after which a connection ends. */
export const idleMs = 5 * 60_000;

/** Milliseconds for the first message of TLS. */
const helloMs = 10_000;

/** The port on which nothing but TLS passes. */
const tlsPort = 443;

const unreachable = new RefusedError("unreachable");

/** First byte of a TLS handshake: RFC 8446, section 5.1. */
const handshakeRecord = 0x16;

/** What serves the connections of one sandbox. */
export interface ConnectionParts {
  readonly policy: NetworkPolicy;
  readonly names: SandboxNames;
  readonly record: NetworkRecord;
  readonly host: UpstreamParts;
  /** Serves what rules look into; undefined where none does. */
  readonly edge: Pick<Edge, "take"> | undefined;
  /** Called when no further connection may be made. */
  readonly onLast: () => void;
  /** Aborts with the sandbox. */
  readonly signal: AbortSignal;
}

/** What the end inside learns of its connection. */
export interface Outcome {
  /** Called before anything is read or written, once there is no refusal but by first bytes. */
  readonly onOpen?: () => void;
  /** Called at most once; it ends the connection. */
  readonly onRefused: (reason: RefusalReason) => void;
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

  /** Takes over a paused connection from inside. Never throws. */
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

  /** Where a host inside leads: a name, or an address of IPv4, which may be that of a name. */
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
    const { policy, host, signal } = this.#parts;
    const grant = grantFor(policy, destination);
    if (grant === undefined) throw new RefusedError("no-rule");
    connection.rules = grant.rules;
    if (grant.requests !== undefined) {
      onOpen?.();
      return this.#openFor(client, destination, grant, connection);
    }
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

  /** Gives it to the edge, once its first bytes are what they have to be. */
  async #openFor(
    client: Socket,
    destination: Destination,
    grant: Grant,
    connection: OpenConnection,
  ): Promise<void> {
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

/** Whether all was written; else calls when it is. */
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

/** TLS must name the host of the connection: others are behind the same address. */
async function refusalOfFirstBytes(
  client: Socket,
  destination: Destination,
  { allowsAnySni }: Grant,
): Promise<RefusalReason | undefined> {
  const first = await firstByte(client);
  if (first === undefined) return undefined;
  if (first !== handshakeRecord)
    return destination.port === tlsPort && !allowsAnySni ? "not-tls" : undefined;
  if (allowsAnySni || destination.kind === "address") return undefined;
  const end = (): void => void client.destroy();
  const timer = setTimeout(end, helloMs);
  client.once("end", end);
  try {
    const hello = await readTlsClientHello(client);
    const { serverName = "" } = getExtensionData(hello, "server_name") ?? {};
    const isSame = serverName.toLowerCase() === destination.name;
    return isSame && !hasOtherBits(client, destination.name) ? undefined : "sni";
  } catch {
    return "sni";
  } finally {
    clearTimeout(timer);
    client.off("end", end);
  }
}

/**
 * Whether what waits has the name with other high bits, which the parser drops and servers do not.
 */
function hasOtherBits(client: Socket, name: string): boolean {
  const bytes = client.read() as Buffer | null;
  if (bytes === null) return false;
  client.unshift(bytes);
  const count = (text: string): number => text.toLowerCase().split(name).length;
  return count(bytes.toString("ascii")) !== count(bytes.toString("latin1"));
}

/** Undefined for a connection that ends without one. */
async function firstByte(client: Socket): Promise<number | undefined> {
  for (;;) {
    const chunk = client.read() as Buffer | null;
    if (chunk !== null) {
      client.unshift(chunk);
      return chunk[0];
    }
    if (client.readableEnded || client.destroyed) return undefined;
    await new Promise<void>((resolve) => {
      const settle = (): void => {
        for (const event of ["readable", "end", "close"]) client.off(event, settle);
        resolve();
      };
      for (const event of ["readable", "end", "close"]) client.once(event, settle);
    });
  }
}
