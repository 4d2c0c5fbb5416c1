/**
 * The contract of a sandbox's own network: the worker's sockets inside its network namespace.
 */
import type { Socket as DatagramSocket } from "node:dgram";
import type { Server, Socket } from "node:net";
import type { NetworkUsage, RefusalReason } from "../../protocol/execution.ts";

/** The host name of sandboxes. */
export const sandboxHostName = "sandbox";

/** Where a socket of the worker stands inside a sandbox. */
export interface SocketPlace {
  readonly address: string;
  readonly port: number;
}

/** The sockets that {@link NamespaceSockets.open} makes. */
export interface SocketPlaces {
  readonly tcp: readonly SocketPlace[];
  readonly udp: readonly SocketPlace[];
}

/**
 * The worker's sockets inside one sandbox, in the order of their places. Connections of the servers
 * come half open, with `pauseOnConnect` and `noDelay`. Disposing closes them.
 */
export interface OpenedSockets extends Disposable {
  readonly tcp: readonly Server[];
  readonly udp: readonly DatagramSocket[];
}

/** Makes sockets inside the network namespace of one sandbox. */
export interface NamespaceSockets {
  /**
   * Before its command runs: all or none; the caller owns them. Every address of the namespace
   * leads to them. Throws SandboxError; the signal's reason.
   */
  open(places: SocketPlaces, signal: AbortSignal): Promise<OpenedSockets>;
  /**
   * While it runs: connects to what listens on a port of its 127.0.0.1; the caller owns the socket.
   * Throws SandboxError when nothing accepts within a tenth of a second, or the sandbox has ended;
   * the signal's reason.
   */
  connect(port: number, signal: AbortSignal): Promise<Socket>;
}

/** A connection of a sandbox that has ended or was refused. */
export interface EndedConnection {
  /** The name that was connected to; undefined for an address that the tool brought itself. */
  readonly name?: string;
  /** The address that the worker connected to or refused; undefined if it found none. */
  readonly address?: string;
  /** Undefined for a question to name service. */
  readonly port?: number;
  /** The texts of the rules that allow it, as in their files. */
  readonly rules: readonly string[];
  /** Undefined for an allowed connection. */
  readonly refusal?: RefusalReason;
  /** From inside. */
  readonly sentBytes: number;
  readonly receivedBytes: number;
  readonly durationMs: number;
  /** What was refused in place of a connection: a question for a name, or a request on one. */
  readonly refusedPart?: "name" | "request";
}

/** The connections of one sandbox. */
export interface ConnectionLog {
  /** Those that are open. */
  readonly open: number;
  /** Reports those that have ended, and each further one as it ends. Call it once. */
  follow(onEnded: (connection: EndedConnection) => void): void;
}

/** Refusals of one sandbox that a list of its connections has. */
export const maxListedRefusals = 200;

/** Passes on all connections, but {@link maxListedRefusals} of those that were refused. */
export function firstRefusals(
  onEnded: (connection: EndedConnection) => void,
): (connection: EndedConnection) => void {
  let refused = 0;
  return (connection) => {
    if (connection.refusal === undefined || ++refused <= maxListedRefusals) onEnded(connection);
  };
}

/** The network of one sandbox. Disposing ends its connections. */
export interface OpenNetwork extends AsyncDisposable {
  /** So far. */
  readonly usage: NetworkUsage;
  readonly connections: ConnectionLog;
}

/** A network that sandboxes are made with, in place of none or of the host's. */
export interface SandboxNetwork {
  /** Files of name service and of TLS: where they are inside, and on the host. */
  readonly files: ReadonlyMap<string, string>;
  /** Variables that its programs need, in place of those that they would have. */
  readonly environment: ReadonlyMap<string, string>;
  /**
   * Opens the network of one sandbox. The command is held until this fulfils, and never runs if it
   * rejects. The maker of the sandbox disposes the network when the sandbox is gone.
   */
  open(sockets: NamespaceSockets, signal: AbortSignal): Promise<OpenNetwork>;
}
