/**
 * The contract of a sandbox's own network: the worker's sockets inside its network namespace.
 */
import type { Socket as DatagramSocket } from "node:dgram";
import type { Server } from "node:net";
import type { NetworkUsage } from "../../protocol/execution.ts";

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
 * come half open, with `pauseOnConnect`. Disposing closes them.
 */
export interface OpenedSockets extends Disposable {
  readonly tcp: readonly Server[];
  readonly udp: readonly DatagramSocket[];
}

/** Makes sockets inside the network namespace of one sandbox, before its command runs. */
export interface NamespaceSockets {
  /**
   * All or none; the caller owns them. Every address of the namespace leads to them. Throws
   * SandboxError; the signal's reason.
   */
  open(places: SocketPlaces, signal: AbortSignal): Promise<OpenedSockets>;
}

/** The network of one sandbox. Disposing ends its connections. */
export interface OpenNetwork extends AsyncDisposable {
  /** So far. */
  readonly usage: NetworkUsage;
}

/** A network that sandboxes are made with, in place of none or of the host's. */
export interface SandboxNetwork {
  /** Files of name service and of TLS: where they are inside, and on the host. */
  readonly files: ReadonlyMap<string, string>;
  /** Variables that its programs need, in place of those that they would have. */
  readonly environment: ReadonlyMap<string, string>;
  /**
   * Makes what serves one sandbox. The command is held until it fulfils; it never runs when it
   * rejects. Whoever made the sandbox disposes it when the sandbox is gone.
   */
  open(sockets: NamespaceSockets, signal: AbortSignal): Promise<OpenNetwork>;
}
