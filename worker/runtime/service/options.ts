/**
 * What both halves of the service are given: apart from them, since users have no types of `ws`.
 */
import type { Clock } from "../../support/clock.ts";
import type { RuntimeBackend } from "../api/backend.ts";

/** Where and for whom a backend is served. */
export interface ServeOptions {
  /** Its owner disposes it after the service. */
  readonly backend: RuntimeBackend;
  /** 0 for any that is free. */
  readonly port: number;
  /** An address of this machine; 127.0.0.1 by default. Others need a token and TLS. */
  readonly host?: string;
  /** Callers send it. Without it, all programs of this machine may execute code. */
  readonly token?: string | undefined;
  /** Certificate and key, as PEM. */
  readonly tls?: { readonly cert: string | Buffer; readonly key: string | Buffer } | undefined;
  readonly maxExecutions?: number;
  readonly maxConnections?: number;
  readonly pingIntervalMs?: number;
  /** Gets failures of the backend and of the sockets. */
  readonly onError?: (error: unknown) => void;
}

/** A served backend. Disposing it ends its executions and closes its sockets. */
export interface RuntimeService extends AsyncDisposable {
  readonly port: number;
}

/** A far side. */
export interface RemoteAddress {
  /** `ws:` or `wss:`. Other hosts than this one need `wss:` and a token. */
  readonly url: string | URL;
  readonly token?: string | undefined;
  /** Certificates to trust in place of the system's, as PEM. */
  readonly ca?: string | Buffer | undefined;
  readonly pingIntervalMs?: number | undefined;
}

/** How a far side is opened. */
export interface RemoteOptions extends RemoteAddress {
  /** Ends the opening. */
  readonly signal?: AbortSignal;
  readonly clock?: Clock;
}
