/**
 * Connects to the hosts of a sandbox: resolves, checks every address, connects to one of those.
 */
import { type Socket, connect } from "node:net";
import { type TLSSocket, connect as connectTls } from "node:tls";
import { isHostName } from "../protocol/host-pattern.ts";
import type { RefusalReason } from "../protocol/execution.ts";
import { abortable } from "../support/timeout.ts";
import { isOwn, isPublic, isTranslated } from "./addresses.ts";
import type { Destination, Grant } from "./policy.ts";
import type { Resolve, WorkerEndpoints } from "./resolve.ts";

/** Milliseconds to find the addresses of a name and to connect. */
export const connectTimeoutMs = 10_000;

/** Addresses of a name that are tried. */
const maxTried = 4;

/** Bytes that a {@link Reader} gets at most. */
const readBytes = 64 * 1024;

/**
 * Gets what comes, in memory that is used again when it returns true, or after false when the
 * socket is resumed. Node lets some 70 MiB of chunks gather before it collects them.
 */
export type Reader = (bytes: Uint8Array) => boolean;

/** What all connections of this worker share. */
export interface UpstreamParts {
  readonly resolve: Resolve;
  readonly endpoints: Pick<WorkerEndpoints, "has">;
}

interface RefusedOptions extends ErrorOptions {
  readonly address?: string | undefined;
  readonly detail?: string | undefined;
}

/** Why a sandbox is not connected. */
export class RefusedError extends Error {
  readonly reason: RefusalReason;
  /** The refused address; for the operator, not for the tool. */
  readonly address: string | undefined;
  /** More about the reason, such as the code of a certificate error. */
  readonly detail: string | undefined;

  constructor(reason: RefusalReason, options: RefusedOptions = {}) {
    super(`a connection was refused: ${reason}`, options);
    this.name = "RefusedError";
    this.reason = reason;
    this.address = options.address;
    this.detail = options.detail;
  }
}

/**
 * A connection; the caller owns it. With a reader it is paused, and the reader gets its bytes in
 * place of the events. Throws RefusedError, the signal's reason.
 */
export async function connectUpstream(
  destination: Destination,
  grant: Grant,
  { resolve, endpoints }: UpstreamParts,
  signal: AbortSignal,
  reader?: Reader,
): Promise<Socket> {
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(connectTimeoutMs)]);
  const addresses =
    destination.kind === "name"
      ? await addressesOf(destination.name, resolve, bounded)
      : [destination.address];
  // Each of them: a name with a good and a bad address is not to be trusted.
  for (const address of addresses) {
    if (isTranslated(address)) throw new RefusedError("not-public", { address });
    if (await abortable(endpoints.has(address, destination.port), bounded))
      throw new RefusedError("worker", { address });
    if (!grant.allowsPrivate && (!isPublic(address) || isOwn(address)))
      throw new RefusedError("not-public", { address });
  }
  const tried = addresses.slice(0, maxTried);
  let cause: unknown;
  for (const address of tried) {
    // Timers take no fractions.
    const share = AbortSignal.timeout(Math.floor(connectTimeoutMs / tried.length));
    try {
      const place = { host: address, port: destination.port };
      return await connectTo(place, AbortSignal.any([bounded, share]), reader);
    } catch (error) {
      cause = error;
    }
    signal.throwIfAborted();
    if (bounded.aborted) break;
  }
  throw new RefusedError("unreachable", { cause });
}

async function addressesOf(
  name: string,
  resolve: Resolve,
  signal: AbortSignal,
): Promise<readonly string[]> {
  // Name servers are asked for nothing else, whatever has let it through.
  if (!isHostName(name)) throw new RefusedError("name-not-found");
  try {
    return await abortable(resolve(name, signal), signal);
  } catch (error) {
    throw new RefusedError("name-not-found", { cause: error });
  }
}

/**
 * TLS to the host of this name, whose certificate is verified as the worker's own connections do.
 * Takes over the socket. Throws RefusedError.
 */
export async function secure(
  socket: Socket,
  name: string,
  signal: AbortSignal,
): Promise<TLSSocket> {
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(connectTimeoutMs)]);
  const secured = connectTls({
    ...{ socket, servername: name, ALPNProtocols: ["http/1.1"] },
    rejectUnauthorized: true,
  });
  const { promise, resolve, reject } = Promise.withResolvers<TLSSocket>();
  secured.once("secureConnect", () => resolve(secured));
  secured.once("error", reject);
  secured.once("close", () => reject(new Error("the host ended the connection")));
  try {
    return await abortable(promise, bounded);
  } catch (error) {
    secured.destroy();
    // Set when everything but the certificate was fine.
    const { authorizationError: problem } = secured as { authorizationError?: unknown };
    const isCertificate = problem !== undefined && problem !== null;
    if (!isCertificate) throw new RefusedError("unreachable", { cause: error });
    const { code: detail } = error as NodeJS.ErrnoException;
    throw new RefusedError("certificate", { cause: error, detail });
  }
}

function connectTo(
  place: { readonly host: string; readonly port: number },
  signal: AbortSignal,
  reader: Reader | undefined,
): Promise<Socket> {
  signal.throwIfAborted();
  const onread = reader && {
    buffer: Buffer.allocUnsafe(readBytes),
    callback: (count: number, buffer: Uint8Array) => reader(buffer.subarray(0, count)),
  };
  const socket = connect({
    ...place,
    allowHalfOpen: true,
    noDelay: true,
    ...(onread && { onread }),
  });
  if (onread !== undefined) socket.pause();
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const onAbort = (): void => void socket.destroy(signal.reason as Error);
  signal.addEventListener("abort", onAbort, { once: true });
  socket.once("connect", () => resolve(socket));
  socket.once("error", reject);
  return promise.finally(() => signal.removeEventListener("abort", onAbort));
}
